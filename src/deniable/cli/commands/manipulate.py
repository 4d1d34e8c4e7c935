"""What forged respondents can do: `deniable manipulate`."""

from __future__ import annotations

from typing import Annotated

import typer

from deniable.cli.options import (
    Chart,
    Epsilon,
    Layout,
    Size,
    check_charts,
    print_result,
    save_charts,
)
from deniable.views.formats import Format


def manipulate(
    mechanism: Annotated[str, typer.Argument(help="A mechanism by name.")],
    size: Size = 16,
    epsilon: Epsilon = 1.0,
    respondents: Annotated[
        int, typer.Option("--respondents", "-n", min=1, help="Number of genuine respondents.")
    ] = 10_000,
    forged: Annotated[
        int | None,
        typer.Option(
            "--forged",
            "-m",
            min=1,
            help="Number of forged respondents (default: 5 % of the genuine).",
        ),
    ] = None,
    target: Annotated[
        list[int] | None,
        typer.Option(
            "--target", "-v", help="Answer to raise; may be repeated (default: the last)."
        ),
    ] = None,
    distribution: Annotated[
        str,
        typer.Option(
            "--distribution",
            "-d",
            help="Distribution of the answers: uniform, zipf, geometric, gaussian or spike.",
        ),
    ] = "zipf",
    runs: Annotated[int, typer.Option(min=1, help="Collections to average over.")] = 20,
    level: Annotated[float, typer.Option(help="Highest rate of false alarms.")] = 0.01,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Seed of a reproducible simulation.")
    ] = None,
    layout: Layout = Format.table,
    chart: Chart = None,
) -> None:
    """Show what forged respondents can do: every attack against every defence."""
    import numpy as np

    from deniable.audit.forging.suite import Suite
    from deniable.cli.progress import tracked
    from deniable.cli.simulate import population
    from deniable.mechanisms.frequency import find_oracle

    check_charts(chart)
    family = find_oracle(mechanism)
    asked = family(family.only_size or size, epsilon)
    k, rng = asked.domain.size, np.random.default_rng(seed)
    shares = np.bincount(population(distribution, k, respondents, rng), minlength=k) / respondents
    many = forged or max(1, respondents // 20)
    suite = Suite.of(
        asked,
        n=respondents,
        forged=many,
        targets=target or [k - 1],
        frequencies=shares,
        runs=runs,
        level=level,
        rng=rng,
    )
    found = suite.report(tracked(suite.steps(), "attacking", len(suite)))
    print_result(found, layout)
    save_charts(chart, found.plot)
