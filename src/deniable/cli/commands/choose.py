"""Which mechanism and method to use: lists, simulations, and speed on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from deniable.cli.options import Chart, Epsilon, Layout, Mechanisms, Size, check_charts, save_charts
from deniable.views.formats import Format

if TYPE_CHECKING:
    from numpy.random import Generator


def mechanisms(size: Size = 16, epsilon: Epsilon = 1.0, layout: Layout = Format.table) -> None:
    """List the mechanisms: source, size of a report, variance, and what each is good for."""
    from deniable.audit.black_box.everything import usual_domain
    from deniable.mechanisms import mechanisms as registry
    from deniable.views.tables import show

    rows = []
    for name, family in registry().items():
        one = family.example(usual_domain(family, size), epsilon)
        rows.append(
            {
                "name": name,
                "paper": family.paper,
                "answers": one.domain.words(),
                "bits": one.bits_per_report,
                "n_variance": one.task.error(one, 1) ** 2 if one.tasks else None,
                "good_for": family.good_for,
            }
        )
    title = f"epsilon = {epsilon:g}; n x variance of a share, or of a mean"
    show(rows, layout, f"{title}; longitudinal: of a first report, with half of epsilon")


def methods(layout: Layout = Format.table) -> None:
    """List the methods of estimation: source, what each does, and its options."""
    from deniable.estimation.frequencies.methods import METHODS
    from deniable.views.tables import show

    rows = [
        {
            "name": name,
            "source": method.paper,
            "sums_to_1": "yes" if method.feasible else "no",
            "about": method.about,
            "options": ", ".join(method.options),
        }
        for name, method in METHODS.items()
    ]
    show(rows, layout, "What sums to 1 is never negative, either.")


def simulate(
    mechanism: Mechanisms = None,
    size: Size = 16,
    epsilon: Epsilon = 1.0,
    respondents: Annotated[
        int, typer.Option("--respondents", "-n", min=1, help="Number of respondents.")
    ] = 10_000,
    distribution: Annotated[
        str,
        typer.Option(
            "--distribution",
            "-d",
            help="Distribution of the answers: uniform, zipf, geometric, gaussian or spike.",
        ),
    ] = "zipf",
    methods: Annotated[
        str, typer.Option("--methods", help="Methods of estimation, separated by commas, or: all.")
    ] = "unbiased",
    runs: Annotated[
        int, typer.Option(min=1, max=1 << 20, help="Repetitions to average over.")
    ] = 20,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Seed of a reproducible simulation.")
    ] = None,
    layout: Layout = Format.table,
    chart: Chart = None,
) -> None:
    """Simulate collections: the error of each mechanism and method, beside its prediction."""
    import numpy as np

    from deniable.cli.simulate import population
    from deniable.views.rows import error_chart
    from deniable.views.tables import show

    check_charts(chart)
    chosen = _choose(mechanism, size, epsilon)
    rng = np.random.default_rng(seed)
    values = population(distribution, size, respondents, rng)
    names = [_methods(methods, one) for one in chosen]
    rows = _simulate_all(chosen, values, names, rng, runs)
    title = f"k = {size}, epsilon = {epsilon:g}, n = {respondents:,}, {distribution}"
    show(rows, layout, f"{title}, {runs} runs")
    save_charts(chart, lambda: error_chart(rows, title))


def _choose(names: list[str] | None, size: int, epsilon: float) -> list[Any]:
    from deniable.core.domain import Domain
    from deniable.mechanisms.frequency import find_oracle, frequency_oracles

    listed = Domain(size)
    every = [name for name, one in frequency_oracles().items() if one.unsuited(listed) is None]
    return [find_oracle(name)(listed, epsilon) for name in names or every]


def _methods(names: str, mechanism: Any) -> list[str]:
    """The methods of a list with commas, or all that suit the mechanism."""
    from deniable.estimation.frequencies.methods import find_method, methods_for

    if names == "all":
        return methods_for(mechanism)
    chosen = [name.strip() for name in names.split(",")]
    for name in chosen:
        find_method(name)
    return chosen


def _simulate_all(
    chosen: list[Any], values: Any, methods: list[list[str]], rng: Generator, runs: int
) -> list[dict[str, Any]]:
    from deniable.cli import simulate as simulation
    from deniable.cli.progress import tracked

    rows: list[dict[str, Any]] = []
    for one, names in zip(chosen, methods, strict=True):
        steps = simulation.runs(one, values, names, rng, runs)
        rows += simulation.summary(one, values, list(tracked(steps, one.name, runs)))
    return rows


def bench(
    mechanism: Mechanisms = None,
    size: Annotated[
        list[int] | None,
        typer.Option("--size", "-k", help="Number of possible answers; may be repeated."),
    ] = None,
    epsilon: Epsilon = 1.0,
    respondents: Annotated[
        int, typer.Option("--respondents", "-n", min=1000, help="Number of reports.")
    ] = 1_000_000,
    threads: Annotated[
        int | None, typer.Option(min=1, help="Number of threads (default: all cores).")
    ] = None,
    layout: Layout = Format.table,
) -> None:
    """Measure the speed of this machine: time per report, beside what random numbers cost."""
    from deniable.cli.bench import bounds, measure
    from deniable.cli.progress import tracked
    from deniable.views.tables import show

    limits = bounds()
    cases = [one for k in size or [16, 128, 1024] for one in _choose(mechanism, k, epsilon)]
    steps = tracked(cases, "measuring", len(cases))
    rows = [row for one in steps for row in measure(one, respondents, threads, limits)]
    title = f"n = {respondents:,}, epsilon = {epsilon:g}; keystream {limits.keystream:.1f} GB/s"
    show(rows, layout, f"{title}, memory copy {limits.memcpy:.1f} GB/s")
