"""The command in this process: much faster than a process for each call."""

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from types import SimpleNamespace

import pytest

from deniable.cli import main


def run(*arguments, code=0, text="", cwd=None, columns=100):
    """What the command prints, if it ends with this code."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", ["deniable", *map(str, arguments)])
        patch.setattr(sys, "stdin", io.StringIO(text))
        patch.setenv("COLUMNS", str(columns))
        if cwd:
            patch.chdir(cwd)
        with pytest.raises(SystemExit) as ended:
            main()
    assert (ended.value.code or 0) == code, err.getvalue()
    return SimpleNamespace(stdout=out.getvalue(), stderr=err.getvalue())
