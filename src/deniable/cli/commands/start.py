"""A first look: `deniable demo`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deniable.cli.options import Layout
from deniable.views.formats import Format

if TYPE_CHECKING:
    from rich.console import Console


def demo(
    respondents: Annotated[
        int, typer.Option("--respondents", "-n", min=1, help="Number of simulated people.")
    ] = 20_000,
    epsilon: Annotated[
        float, typer.Option("--epsilon", "-e", help="Privacy budget of one person.")
    ] = 3.0,
    charts: Annotated[Path, typer.Option(help="Folder for the charts.")] = Path("out/demo"),
    stay: Annotated[
        bool, typer.Option("--stay", help="Keep the collector running to look at its pages.")
    ] = False,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port of the collector; 0 takes any free one.")
    ] = 0,
    layout: Layout = Format.table,
) -> None:
    """Run a complete collection on this machine with simulated respondents."""
    from rich.console import Console

    from deniable.cli import demo as demonstration
    from deniable.views.tables import show

    console = Console(stderr=layout is not Format.table)
    with (
        tempfile.TemporaryDirectory() as folder,
        demonstration.collector(Path(folder), epsilon, respondents, port) as running,
    ):
        _introduce(console, respondents, epsilon, len(demonstration.QUESTIONS))
        answers = demonstration.invent(respondents)
        _answer(running.url, answers)
        answered = list(demonstration.results(running.store, answers))
        if layout is not Format.table:
            show([row for one in answered for row in _estimate_rows(one)], layout)
        for number, one in enumerate(answered, 1):
            if layout is Format.table:
                console.print(f"\n{one.question}", style="bold", markup=False)
                console.print(one.estimate.table(truth=one.truth))
            console.print(_charts(one, charts, number), style="dim", soft_wrap=True, markup=False)
        if stay:
            _stay(running, console)


def _introduce(console: Console, respondents: int, epsilon: float, questions: int) -> None:
    console.print(
        f"[bold]{respondents:,} simulated respondents[/], {questions} questions, "
        f"epsilon {epsilon:g} for each person.\nEvery answer is randomised by its own client "
        "and sent over HTTP; the truth column is known only because this is a simulation."
    )


def _answer(url: str, answers: dict[str, list[Any]]) -> None:
    from deniable.cli.demo import answer_all
    from deniable.cli.progress import shown

    done, total = 0, len(next(iter(answers.values())))
    with shown("answering") as tell:
        for number in answer_all(url, answers):
            done += number
            tell("answering", done, total)


def _stay(running: Any, console: Console) -> None:
    """Wait for Ctrl-C."""
    console.print(f"\nquestionnaire  {running.url}/answer", soft_wrap=True, markup=False)
    console.print(f"dashboard      {running.dashboard}", soft_wrap=True, markup=False)
    console.print("stop with Ctrl-C", style="dim")
    try:
        running.process.wait()
    except KeyboardInterrupt:
        console.print("stopped")


def _charts(answered: Any, folder: Path, number: int) -> str:
    """Save the chart of a question; say where."""
    from deniable.views import save

    files = [folder / f"question-{number}{end}" for end in (".html", ".png")]
    drawn = answered.estimate.chart(answered.truth, title=answered.question)
    return f"charts: {', '.join(str(save(drawn, file)) for file in files)}"


def _estimate_rows(answered: Any) -> list[dict[str, Any]]:
    pairs = zip(answered.estimate.rows(), answered.truth.tolist(), strict=True)
    return [{"question": answered.question, **row, "truth": truth} for row, truth in pairs]
