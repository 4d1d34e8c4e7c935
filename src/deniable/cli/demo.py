"""A first look: `deniable demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from deniable.cli.options import Epsilon, Layout
from deniable.studio.formats import Format


def demo(
    respondents: Annotated[int, typer.Option("--respondents", "-n", min=1)] = 8_000,
    epsilon: Epsilon = 2.0,
    charts: Annotated[Path, typer.Option(help="Folder for the charts.")] = Path("out/demo"),
    layout: Layout = Format.table,
) -> None:
    """A survey of simulated respondents, randomised with secure coins, estimated with intervals."""
    from rich.console import Console

    from deniable.studio import demo as survey
    from deniable.studio.tables import show

    console = Console(stderr=layout is not Format.table)
    epsilon_each = epsilon / len(survey.QUESTIONS)
    console.print(
        f"[bold]{respondents:,} simulated respondents[/], {len(survey.QUESTIONS)} questions, "
        f"epsilon {epsilon:g} for each person: {epsilon_each:g} a question.\n"
        "Every answer is randomised before it leaves its device; the truth column is known "
        "only because this is a simulation."
    )
    rows: list[dict[str, Any]] = []
    for number, question in enumerate(survey.QUESTIONS, 1):
        answered = survey.ask(question, respondents, epsilon_each)
        rows += _estimate_rows(question, answered)
        if layout is Format.table:
            console.print(f"\n{question}", style="bold", markup=False)
            console.print(answered.estimate.table(truth=answered.truth))
        charted = _demo_charts(answered, charts, number)
        console.print(charted, style="dim", soft_wrap=True, markup=False)
    if layout is not Format.table:
        show(rows, layout)


def _demo_charts(answered: Any, folder: Path, number: int) -> str:
    """Save the charts of a question; say where, or what is missing."""
    from deniable.errors import MissingExtra

    files = [folder / f"question-{number}{end}" for end in (".html", ".png")]
    try:
        saved = [str(answered.estimate.save(file, truth=answered.truth)) for file in files]
    except MissingExtra as missing:
        return f"no charts: {missing}"
    return f"charts: {', '.join(saved)}"


def _estimate_rows(question: str, answered: Any) -> list[dict[str, Any]]:
    pairs = zip(answered.estimate.rows(), answered.truth.tolist(), strict=True)
    return [{"question": question, **row, "truth": truth} for row, truth in pairs]
