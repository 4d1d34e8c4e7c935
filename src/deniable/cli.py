"""The ``deniable`` command."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deniable.studio.formats import Format

if TYPE_CHECKING:
    from numpy.random import Generator

app = typer.Typer(
    help="Collect sensitive statistics under local differential privacy.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Layout = Annotated[Format, typer.Option("--format", "-f", help="How to print the table.")]
Epsilon = Annotated[float, typer.Option("--epsilon", "-e", help="Privacy budget of one report.")]
Mechanisms = Annotated[
    list[str] | None,
    typer.Option("--mechanism", "-m", help="Which one; may be repeated. Default: all."),
]
Size = Annotated[int, typer.Option("--size", "-k", help="Number of possible answers.")]
Chart = Annotated[
    list[Path] | None,
    typer.Option("--chart", "-c", help="Save a chart (.html, .png or .svg); may be repeated."),
]
Spec = Annotated[
    Path | None,
    typer.Option("--mechanism", "-m", help="Spec (JSON) of the reports, if not in the file."),
]
MethodName = Annotated[
    str | None, typer.Option("--method", help="See `deniable methods`. Default: bayes.")
]
Confidence = Annotated[float, typer.Option(help="Level of the intervals.")]
Errors = Annotated[
    str | None,
    typer.Option(help="score, exact, bootstrap, posterior, information or regression."),
]
Simultaneous = Annotated[
    bool, typer.Option("--simultaneous", help="Intervals that hold for all values together.")
]
Population = Annotated[str, typer.Option(help="respondents, or everyone they are a sample of.")]
CandidatesFile = Annotated[
    Path | None,
    typer.Option(help="Text file, one candidate a line (spaces count), if answers were any text."),
]
Options = Annotated[
    list[str] | None,
    typer.Option("--option", "-o", help="NAME=JSON of the method, e.g. iterations=100."),
]


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    if version:
        from deniable import __version__

        typer.echo(f"deniable {__version__}")
        raise typer.Exit


@app.command()
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


@app.command()
def simulate(
    mechanism: Mechanisms = None,
    size: Size = 16,
    epsilon: Epsilon = 1.0,
    respondents: Annotated[int, typer.Option("--respondents", "-n", min=1)] = 10_000,
    distribution: Annotated[
        str, typer.Option("--distribution", "-d", help="uniform, zipf, geometric, gaussian, spike.")
    ] = "zipf",
    methods: Annotated[
        str, typer.Option("--methods", help="Names with commas between, or all that suit.")
    ] = "unbiased",
    runs: Annotated[int, typer.Option(min=1, help="Repetitions to average over.")] = 20,
    seed: Annotated[int | None, typer.Option(min=0, help="For a reproducible simulation.")] = None,
    layout: Layout = Format.table,
    chart: Chart = None,
) -> None:
    """Simulate collections: the error of each mechanism and method, beside its prediction."""
    import numpy as np

    from deniable.studio.charts import error_chart
    from deniable.studio.simulate import population
    from deniable.studio.tables import show

    _check_charts(chart)
    chosen = _choose(mechanism, size, epsilon)
    rng = np.random.default_rng(seed)
    values = population(distribution, size, respondents, rng)
    names = [_methods(methods, one) for one in chosen]
    rows = _simulate_all(chosen, values, names, rng, runs)
    title = f"k = {size}, epsilon = {epsilon:g}, n = {respondents:,}, {distribution}"
    show(rows, layout, f"{title}, {runs} runs")
    _save_charts(chart, lambda: error_chart(rows, title))


def _choose(names: list[str] | None, size: int, epsilon: float) -> list[Any]:
    from deniable.mechanisms import mechanism as build
    from deniable.mechanisms import mechanisms

    every = [name for name, family in mechanisms().items() if family.only_size in (None, size)]
    return [build(name, size, epsilon) for name in names or every]


def _methods(names: str, mechanism: Any) -> list[str]:
    """The methods of a list with commas, or all that suit the mechanism."""
    from deniable.estimation.methods import find_method, methods_for

    if names == "all":
        return methods_for(mechanism)
    chosen = [name.strip() for name in names.split(",")]
    for name in chosen:
        find_method(name)
    return chosen


def _simulate_all(
    chosen: list[Any], values: Any, methods: list[list[str]], rng: Generator, runs: int
) -> list[dict[str, Any]]:
    from rich.console import Console
    from rich.progress import track

    from deniable.studio import simulate as studio

    console = Console(stderr=True)
    quiet = not console.is_terminal
    rows: list[dict[str, Any]] = []
    for one, names in zip(chosen, methods, strict=True):
        steps = studio.runs(one, values, names, rng, runs)
        shown = track(steps, one.name, total=runs, console=console, transient=True, disable=quiet)
        rows += studio.summary(one, values, list(shown))
    return rows


def _check_charts(paths: list[Path] | None) -> None:
    """Find out before the work whether its charts can be drawn and saved."""
    from deniable.extras import altair
    from deniable.studio.charts import check_path

    for path in paths or ():
        check_path(path)
        altair()


def _save_charts(paths: list[Path] | None, make: Any) -> None:
    if not paths:
        return
    from deniable.studio.charts import save

    chart = make()
    for path in paths:
        typer.echo(f"chart: {save(chart, path)}", err=True)


@app.command()
def estimate(
    files: Annotated[list[Path], typer.Argument(help="Reports (Parquet) or tallies; combined.")],
    mechanism: Spec = None,
    method: MethodName = None,
    confidence: Confidence = 0.95,
    errors: Errors = None,
    population: Population = "respondents",
    simultaneous: Simultaneous = False,
    candidates: CandidatesFile = None,
    option: Options = None,
    layout: Layout = Format.table,
    chart: Chart = None,
) -> None:
    """Estimate frequencies with intervals from files of reports or tallies."""
    from deniable.estimation import combine
    from deniable.studio.files import read_candidates, read_options, read_sources

    _check_charts(chart)
    found = combine(
        read_sources(files, mechanism),
        method,
        confidence=confidence,
        errors=errors,
        population=population,
        simultaneous=simultaneous,
        candidates=None if candidates is None else read_candidates(candidates),
        **read_options(option or []),
    )
    _print(found, layout)
    _save_charts(chart, found.plot)


def _print(found: Any, layout: Format) -> None:
    """Numbers that have exports of their own."""
    from rich.console import Console

    if layout is Format.table:
        Console().print(found.table())
    else:
        print(found.to_json() if layout is Format.json else found.to_csv().rstrip("\n"))


@app.command()
def series(
    files: Annotated[
        list[Path],
        typer.Argument(help="One file a round (reports or a tally), named for it; or one of all."),
    ],
    mechanism: Spec = None,
    method: MethodName = None,
    confidence: Annotated[
        float,
        typer.Option(help="Level of the intervals of a round. Changes have 1 - false alarm."),
    ] = 0.95,
    errors: Errors = None,
    population: Population = "respondents",
    simultaneous: Simultaneous = False,
    false_alarm: Annotated[
        float | None,
        typer.Option(help="Probability of any flag if nothing changes. Default: 0.05."),
    ] = None,
    respondents: Annotated[
        str | None,
        typer.Option(
            help="same (a panel) or fresh. Default: fresh for changes, same for --pooled."
        ),
    ] = None,
    baseline: Annotated[
        str | None, typer.Option(help="Compare with this round, not with the one before.")
    ] = None,
    pooled: Annotated[
        bool, typer.Option("--pooled", help="One estimate from all rounds, for a stable truth.")
    ] = False,
    candidates: CandidatesFile = None,
    option: Options = None,
    values: Annotated[
        str | None, typer.Option(help="Values to show, with commas between. Default: frequent.")
    ] = None,
    layout: Layout = Format.table,
    chart: Chart = None,
) -> None:
    """Estimate every round of a repeated collection, and flag what changed between rounds.

    Rounds are named for their files and in the order of their names. CSV holds the series alone.
    """
    from deniable.studio import repeated
    from deniable.studio.files import read_candidates, read_options, read_rounds

    _check_charts(chart)
    if pooled:
        _left_out("--pooled", values=values, baseline=baseline, false_alarm=false_alarm)
    collection = read_rounds(files, mechanism)
    listed = None if candidates is None else read_candidates(candidates)
    chosen: dict[str, Any] = {"confidence": confidence, "errors": errors, "population": population}
    chosen |= {"simultaneous": simultaneous, "candidates": listed, **read_options(option or [])}
    compared: dict[str, Any] = {"respondents": respondents, "false_alarm": false_alarm}
    compared = {name: value for name, value in compared.items() if value is not None}
    if pooled:
        one = repeated.tallied(collection).pooled(method, **chosen, **compared)
        _print(one, layout)
        _save_charts(chart, one.plot)
        return
    found = repeated.study(collection, method, chosen, baseline, **compared)
    wanted = found.chosen(values)
    repeated.show(found, layout, wanted)
    _save_charts(chart, lambda: found.series.plot(values=wanted, changes=found.changes))


def _left_out(option: str, **others: Any) -> None:
    """Refuse what would be ignored beside an option."""
    from deniable.errors import InvalidArgument

    for name, value in others.items():
        if value is not None:
            raise InvalidArgument(f"--{name.replace('_', '-')}", value, f"left out with {option}")


@app.command()
def methods(layout: Layout = Format.table) -> None:
    """List the methods of estimation: source, what each does, and its options."""
    from deniable.estimation.methods import METHODS
    from deniable.studio.tables import show

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


@app.command()
def mechanisms(size: Size = 16, epsilon: Epsilon = 1.0, layout: Layout = Format.table) -> None:
    """List the mechanisms: source, size of a report, variance, and what each is good for."""
    from deniable.mechanisms import mechanisms as registry
    from deniable.studio.tables import show

    rows = []
    for name, family in registry().items():
        one = family(family.only_size or size, epsilon)
        rows.append(
            {
                "name": name,
                "paper": family.paper,
                "bits": one.bits_per_report,
                "n_variance": float(one.variance(1, 1 / one.domain.size)),
                "good_for": family.good_for,
            }
        )
    title = f"k = {size} (brr: 2), epsilon = {epsilon:g}; n x variance of a frequency"
    show(rows, layout, f"{title}; longitudinal: of a first report, with half of epsilon")


@app.command()
def budget(
    mechanism: Annotated[
        str, typer.Option("--mechanism", "-m", help="One whose devices remember.")
    ] = "losue",
    size: Size = 16,
    epsilon: Annotated[
        float, typer.Option("--epsilon", "-e", help="Of all reports of one answer.")
    ] = 2.0,
    epsilon_1: Annotated[
        float | None,
        typer.Option("--epsilon-1", "-1", help="Epsilon of one report. Default: half."),
    ] = None,
    changes: Annotated[
        list[int] | None, typer.Option("--changes", help="Changes of the answer; may be repeated.")
    ] = None,
    reports: Annotated[
        int, typer.Option("--reports", "-t", min=2, help="Reports to look at.")
    ] = 30,
    layout: Layout = Format.table,
    chart: Chart = None,
) -> None:
    """What repeated reports cost: exact epsilon after some reports and changes of the answer."""
    from deniable.studio.budgets import budget_chart, budget_table, lasting_of
    from deniable.studio.tables import show

    _check_charts(chart)
    asked, guarantee = lasting_of(mechanism, size, epsilon, epsilon_1)
    counts = changes or [0, 1, 2]
    show(
        budget_table(guarantee, reports, counts),
        layout,
        f"epsilon of which answers were given; {asked}",
    )
    _save_charts(chart, lambda: budget_chart(guarantee, reports, counts))


@app.command()
def ledger(
    file: Annotated[Path, typer.Argument(help="A ledger, as Ledger.create makes it.")],
    collection: Annotated[str | None, typer.Option(help="Only this one. Default: all.")] = None,
    witness: Annotated[
        Path | None, typer.Option(help="Its witness. Default: beside it, FILE.witness.")
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Only say whether chain and witness are sound.")
    ] = False,
    layout: Layout = Format.table,
) -> None:
    """Who may have spent what, without saying who; every entry is checked first."""
    from deniable.ledger import Ledger
    from deniable.studio.tables import show

    opened = Ledger(file, witness)
    entries, seen = opened.entries, opened.witnessed
    if verify:
        typer.echo(f"{file}: the chain of {entries} entries is sound; the witness has seen {seen}")
        return
    title = f"epsilon spent of {opened.budget:g} a subject; {entries} entries"
    show(opened.summary(collection), layout, f"{title}; without a name: all collections")


@app.command()
def audit(
    mechanism: Annotated[str | None, typer.Argument(help="A mechanism by name.")] = None,
    size: Size = 16,
    epsilon: Annotated[float, typer.Option("--epsilon", "-e", help="What is promised.")] = 1.0,
    every: Annotated[bool, typer.Option("--all", help="Every mechanism.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="With --all: in a minute.")] = False,
    command: Annotated[
        str | None,
        typer.Option(help="A program that reads a value a line and prints a report a line."),
    ] = None,
    function: Annotated[
        str | None, typer.Option("--callable", help="module:function of a value, in Python.")
    ] = None,
    library: Annotated[
        str | None, typer.Option(help="multi-freq-ldpy, pure-ldp or opendp, if installed.")
    ] = None,
    value: Annotated[
        list[str] | None,
        typer.Option("--value", "-v", help="Answers to compare; repeat. Default: four of 0..k-1."),
    ] = None,
    respondents: Annotated[
        int | None, typer.Option("--respondents", "-n", help="Reports of each value.")
    ] = None,
    reports: Annotated[
        int, typer.Option("--reports", "-t", min=1, help="Reports of each device of a mechanism.")
    ] = 1,
    confidence: Annotated[float, typer.Option(help="Of the bounds on epsilon.")] = 0.999,
    seed: Annotated[int | None, typer.Option(min=0, help="Of mechanisms, not of others.")] = None,
    layout: Layout = Format.table,
    chart: Chart = None,
) -> None:
    """Check a promise: exactly where the code can be enumerated, else by sampling a black box.

    Exit code 1 if a promise is broken, or coins look broken.
    """
    from deniable.studio import auditing

    _check_charts(chart)
    subject = auditing.Subject.of(mechanism, every, command, function, library)
    settings = auditing.Settings(
        size, epsilon, value, respondents, reports, confidence, seed, quick
    )
    found = auditing.run(subject, settings)
    found.show(layout)
    _save_charts(chart, found.chart)
    if not found.ok:
        raise typer.Exit(1)


@app.command()
def bench(
    mechanism: Mechanisms = None,
    size: Annotated[
        list[int] | None, typer.Option("--size", "-k", help="Answers; may be repeated.")
    ] = None,
    epsilon: Epsilon = 1.0,
    respondents: Annotated[int, typer.Option("--respondents", "-n", min=1000)] = 1_000_000,
    threads: Annotated[int | None, typer.Option(min=1, help="Default: all cores.")] = None,
    layout: Layout = Format.table,
) -> None:
    """Measure this machine: time a report, beside the bound of random numbers and memory."""
    from rich.console import Console
    from rich.progress import track

    from deniable.studio.bench import bounds, measure
    from deniable.studio.tables import show

    limits = bounds()
    cases = [one for k in size or [16, 128, 1024] for one in _choose(mechanism, k, epsilon)]
    console = Console(stderr=True)
    quiet = not console.is_terminal
    steps = track(cases, "measuring", console=console, transient=True, disable=quiet)
    rows = [row for one in steps for row in measure(one, respondents, threads, limits)]
    title = f"n = {respondents:,}, epsilon = {epsilon:g}; keystream {limits.keystream:.1f} GB/s"
    show(rows, layout, f"{title}, memory copy {limits.memcpy:.1f} GB/s")


def main() -> None:
    """Run the command; a refused input is one clear line, not a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot draw a bar gets a "?"
    try:
        app()
    except MemoryError:
        typer.secho("deniable: not enough memory; choose fewer answers or respondents", err=True)
        sys.exit(2)
    except (ValueError, ImportError, OSError) as error:
        typer.secho(f"deniable: {error}", fg="red", err=True)
        sys.exit(2)
