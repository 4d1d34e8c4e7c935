"""Long work says how far it is, and how to go on when it was interrupted."""

import pytest
import typer

from deniable.cli import progress as shown


def test_a_log_gets_a_line_now_and_then(capsys, monkeypatch):
    monkeypatch.setattr(shown, "EVERY", -1)
    with shown.resumable("rows read", "Read again.") as progress:
        progress(1, 1_000)
        progress(1_000, 1_000)
    assert capsys.readouterr().err == "rows read: 1 of 1,000\nrows read: 1,000 of 1,000\n"


def test_short_work_leaves_no_line(capsys):
    with shown.resumable("rows read", "Read again.") as progress:
        progress(5, 10)
    assert capsys.readouterr() == ("", "")


def interrupted():
    with shown.resumable("rows read", "Read again.") as progress:
        progress(5, 10)
        raise KeyboardInterrupt


def test_an_interruption_says_what_is_done_and_how_to_go_on(capsys):
    with pytest.raises(typer.Exit) as ended:
        interrupted()
    assert ended.value.exit_code == 130
    assert capsys.readouterr().err == "Stopped: 5 of 10 rows read. Read again.\n"
