"""Tests of hypotheses, from files of reports or tallies: `deniable test`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from deniable.cli.help import PlainCommand, PlainGroup
from deniable.cli.options import (
    Chart,
    Confidence,
    Duplicates,
    EngineName,
    Layout,
    Master,
    Question,
    Spec,
    check_charts,
    print_result,
    refuse_beside,
    save_charts,
)
from deniable.views.formats import Format

if TYPE_CHECKING:
    from deniable.core.stored import Source

test = typer.Typer(
    cls=PlainGroup,
    help="Test a hypothesis, such as that two means are equal.",
    no_args_is_help=True,
)


def mean(
    samples: Annotated[
        list[str],
        typer.Argument(
            help="Reports (Parquet) or tallies of one group, or of two groups of different people: "
            "a file, a folder or an address for each group."
        ),
    ],
    value: Annotated[
        float | None, typer.Option(help="The mean to test, where there is one group.")
    ] = None,
    alternative: Annotated[
        str,
        typer.Option(help="What to find: two-sided, or only greater or less (than the value)."),
    ] = "two-sided",
    confidence: Confidence = 0.95,
    mechanism: Spec = None,
    question: Question = None,
    duplicates: Duplicates = "refuse",
    engine: EngineName = "local",
    master: Master = None,
    layout: Layout = Format.table,
    chart: Chart = None,
) -> None:
    """Test whether a mean is a given number, or whether the means of two groups are equal."""
    from deniable.cli.files import read_sources
    from deniable.cli.progress import shown
    from deniable.engines.named import engine_named
    from deniable.errors import InvalidArgument
    from deniable.estimation.testing import mean_test

    check_charts(chart)
    if len(samples) == 1 and value is None:
        raise InvalidArgument("--value", value, "given, or a second group to compare with")
    if len(samples) > 1:
        refuse_beside("two groups", value=value)
    _refuse_more(samples)
    with shown() as progress:
        runs = engine_named(engine, master)
        sources = [
            _one_sample(path, read_sources([path], mechanism, runs, duplicates, progress), question)
            for path in samples
        ]
        other = value if value is not None else sources[1]
        found = mean_test(sources[0], other, alternative=alternative, confidence=confidence)
    print_result(found, layout)
    save_charts(chart, found.chart)


def _one_sample(path: str, sources: list[Source], question: str | None) -> Source:
    """What one group says about the question."""
    from deniable.cli.files import about_question
    from deniable.errors import InvalidArgument
    from deniable.estimation.parts import about_one_question

    merged = about_one_question(about_question(sources, question))
    if len(merged) > 1:
        allowed = "a group with one mechanism, and either reports or tallies"
        raise InvalidArgument("samples", path, allowed)
    return merged[0]


def _refuse_more(samples: list[str]) -> None:
    """Refuse three groups, and two rounds of one collection: the same people may be in both.

    Exports name the round of their files: ``round=2/``, or ``.round-2.parquet``.
    """
    from deniable.errors import InvalidArgument

    if len(samples) > 2 or len({*samples}) < len(samples):
        raise InvalidArgument("samples", samples, "one group, or two different ones")
    rounds = [re.split(r"\bround[=-](\d+)", path)[:2] for path in samples]
    if len(rounds) == 2 and rounds[0] != rounds[1] and rounds[0][0] == rounds[1][0]:
        allowed = "of different people: these are two rounds of one collection"
        raise InvalidArgument("samples", samples, allowed)


for _command in (mean,):
    test.command(_command.__name__, cls=PlainCommand)(_command)
