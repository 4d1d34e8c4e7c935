"""The ``deniable`` command: every command is a function of `commands`, listed here."""

from __future__ import annotations

import io
import os
import sys
from typing import Annotated

import typer

from deniable.cli.commands.check import audit, budget, ledger
from deniable.cli.commands.choose import bench, mechanisms, methods, simulate
from deniable.cli.commands.collect import check, init, serve, token
from deniable.cli.commands.estimate import estimate, series
from deniable.cli.commands.manipulate import manipulate
from deniable.cli.commands.merge import merge, upgrade
from deniable.cli.commands.privatise import privatize
from deniable.cli.commands.reproduce import reproduce
from deniable.cli.commands.start import demo
from deniable.cli.commands.store import backup, export, import_, purge, verify_store
from deniable.cli.commands.tally import tally
from deniable.cli.commands.testing import test
from deniable.cli.help import PlainCommand, PlainGroup

app = typer.Typer(
    cls=PlainGroup,
    help="Collect sensitive statistics under local differential privacy.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

#: In the order of the help.
_COMMANDS = {
    "Start here": (demo,),
    "Collect": (init, check, serve, token, privatize),
    "Look after a store": (verify_store, backup, purge, export, import_, merge, upgrade),
    "Choose": (mechanisms, methods, simulate, bench),
    "Estimate": (tally, estimate, series),
    "Check": (audit, budget, ledger, manipulate, reproduce),
}
for _panel, _members in _COMMANDS.items():
    for _command in _members:
        _name = _command.__name__.strip("_").replace("_", "-")
        app.command(_name, cls=PlainCommand, rich_help_panel=_panel)(_command)
app.add_typer(test, name="test", rich_help_panel="Estimate")


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    if version:
        from deniable import __version__

        typer.echo(f"deniable {__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command; a refused input is one clear line, not a traceback."""
    # Read when NumPy is loaded. Matrices here are small, and threads of BLAS wait busily for cores
    # that other processes have: a density took 25 seconds instead of one half.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot draw a bar gets a "?"
    try:
        app()
    except MemoryError:
        typer.secho("deniable: not enough memory; choose fewer answers or respondents", err=True)
        sys.exit(2)
    except RecursionError:
        typer.secho("deniable: the input is nested too deeply", fg="red", err=True)
        sys.exit(2)
    except (ValueError, ImportError, OSError) as error:
        typer.secho(f"deniable: {error}", fg="red", err=True)
        sys.exit(2)
