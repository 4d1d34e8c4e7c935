"""What is promised, spent and checked: `deniable budget`, `ledger` and `audit`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from deniable.cli.options import Chart, Layout, Size, check_charts, refuse_beside, save_charts
from deniable.views.formats import Format

SEVERAL = (
    "Number of reports per device; epsilon is that of all of them. A program then prints each line "
    "as a JSON array of these reports. A callable takes nothing and returns a function of a value."
)


def budget(
    mechanism: Annotated[
        str, typer.Option("--mechanism", "-m", help="A mechanism whose devices remember.")
    ] = "losue",
    size: Size = 16,
    epsilon: Annotated[
        float, typer.Option("--epsilon", "-e", help="Epsilon of all reports of one answer.")
    ] = 2.0,
    epsilon_1: Annotated[
        float | None,
        typer.Option("--epsilon-1", "-1", help="Epsilon of one report (default: half)."),
    ] = None,
    changes: Annotated[
        list[int] | None, typer.Option("--changes", help="Changes of the answer; may be repeated.")
    ] = None,
    reports: Annotated[
        int, typer.Option("--reports", "-t", min=2, help="Number of reports to show.")
    ] = 30,
    layout: Layout = Format.table,
    chart: Chart = None,
) -> None:
    """Show what repeated reports of one person cost: the exact epsilon after each report."""
    from deniable.cli.budgets import budget_table, lasting_of
    from deniable.views.tables import show

    check_charts(chart)
    asked, guarantee = lasting_of(mechanism, size, epsilon, epsilon_1)
    counts = changes or [0, 1, 2]
    show(
        budget_table(guarantee, reports, counts),
        layout,
        f"epsilon of which answers were given; {asked}",
    )
    save_charts(chart, lambda: guarantee.chart(reports, counts))


def ledger(
    file: Annotated[Path, typer.Argument(help="A ledger, as Ledger.create makes it.")],
    collection: Annotated[
        str | None, typer.Option(help="Show only this collection (default: all).")
    ] = None,
    witness: Annotated[
        Path | None, typer.Option(help="Its witness (default: FILE.witness beside it).")
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Only say whether chain and witness are sound.")
    ] = False,
    layout: Layout = Format.table,
) -> None:
    """Show and verify the privacy ledger."""
    from deniable.ledger import Ledger
    from deniable.views.tables import show

    opened = Ledger(file, witness)
    entries, seen = opened.entries, opened.witnessed
    if verify:
        typer.echo(f"{file}: the chain of {entries} entries is sound; the witness has seen {seen}")
        return
    title = (
        f"epsilon spent of {opened.budget:g} a subject; {entries} entries; no name: all together"
    )
    if collection is not None:
        title = f"epsilon spent on {collection}; all collections have {opened.budget:g} a subject"
    show(opened.summary(collection), layout, title)


def audit(
    mechanism: Annotated[str | None, typer.Argument(help="A mechanism by name.")] = None,
    size: Annotated[
        int | None, typer.Option("--size", "-k", help="Number of possible answers (default: 16).")
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option("--epsilon", "-e", help="The epsilon that is promised (default: 1)."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Check every mechanism.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="With --all: fewer checks, in a minute.")
    ] = False,
    command: Annotated[
        str | None,
        typer.Option(
            help="A program that reads one value per line and prints one report per line."
        ),
    ] = None,
    function: Annotated[
        str | None,
        typer.Option("--callable", help="A Python function of a value, as module:function."),
    ] = None,
    library: Annotated[
        str | None, typer.Option(help="Check multi-freq-ldpy, pure-ldp or opendp.")
    ] = None,
    value: Annotated[
        list[str] | None,
        typer.Option("--value", "-v", help="Answer to compare; may be repeated (default: four)."),
    ] = None,
    respondents: Annotated[
        int | None, typer.Option("--respondents", "-n", help="Number of reports per value.")
    ] = None,
    reports: Annotated[int | None, typer.Option("--reports", "-t", min=1, help=SEVERAL)] = None,
    confidence: Annotated[
        float, typer.Option(help="Confidence level of the bounds on epsilon.")
    ] = 0.999,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Seed for our mechanisms (others draw their own).")
    ] = None,
    layout: Layout = Format.table,
    chart: Chart = None,
) -> None:
    """Check a promise: exactly where the code can be enumerated, else by sampling a black box.

    Exit code 1 if a promise is broken, something is suspicious, or a promise could not be checked.
    """
    from deniable.cli import audit as audit_command

    check_charts(chart)
    subject = audit_command.AuditSubject.of(mechanism, every, command, function, library)
    settings = audit_command.AuditSettings(
        size=size,
        epsilon=epsilon,
        value=value,
        n=respondents,
        reports=reports,
        confidence=confidence,
        seed=seed,
        quick=quick,
    )
    unused = audit_command.UNUSED[subject.kind]
    refuse_beside(subject.words, **{name: settings.given(name) for name in unused})
    if value and subject.kind in ("command", "callable"):
        refuse_beside("--value", size=size)
    found = audit_command.run(subject, settings)
    found.show(layout)
    save_charts(chart, found.chart)
    if layout is Format.table and not chart:
        typer.echo("for a chart, add: -c audit.html")
    if not found.ok:
        if layout is not Format.table:  # the table says it
            typer.echo("\n".join(found.faults), err=True)
        raise typer.Exit(1)
