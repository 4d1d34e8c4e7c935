"""A collection from its first line to a server: `deniable init`, `check`, `serve` and `token`."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deniable.cli.options import Layout
from deniable.views.formats import Format

if TYPE_CHECKING:
    from deniable.cli.verdicts import Redesign, Verdict
    from deniable.collection.survey import Survey

SurveyFile = Annotated[str, typer.Argument(help="A survey (TOML) or a manifest (JSON).")]
StoreAt = Annotated[str, typer.Argument(help="The store: a file, or postgresql://...")]
#: Environment variable with the key of the collection: arguments show in lists of processes.
KEY = "DENIABLE_KEY"
#: The same for partners, who may send batches.
PARTNER_KEY = "DENIABLE_PARTNER_KEY"
#: Connections beyond the limit: they are told to come again, and watchers get their answer.
SPARE = 50


def init(
    file: Annotated[Path, typer.Argument(help="The file to write.")] = Path("survey.toml"),
    example: Annotated[
        bool, typer.Option("--example", help="Write an example without asking.")
    ] = False,
) -> None:
    """Write a survey. Asks you for its questions, one after the other."""
    from deniable.collection.example import EXAMPLE, to_toml
    from deniable.errors import InvalidArgument

    if not file.parent.is_dir():
        raise InvalidArgument("file", str(file), "in a folder that exists")
    if file.exists():
        raise FileExistsError(
            f"{file} already exists. Choose another name: deniable init other.toml"
        )
    survey = EXAMPLE if example else _interviewed(file)
    with file.open("x", encoding="utf-8") as opened:
        opened.write(to_toml(survey))
    number = len(survey["questions"])
    asked = "1 question" if number == 1 else f"{number} questions"
    typer.echo(f"{file}: {asked}. Next: {_command('check', str(file))}")


def _interviewed(file: Path) -> dict[str, Any]:
    """The survey that somebody describes at the terminal, and wants to be written."""
    from functools import partial

    from deniable.cli.interview import agreed, interview, summary
    from deniable.cli.verdicts import verdicts
    from deniable.collection.survey import mechanism_of

    typer.echo(f"This writes {file}, which you can edit later. Ctrl-C stops without writing.\n")
    try:
        data, survey = interview()
        people = data["respondents"]
        judged = verdicts(survey.collection, people, partial(mechanism_of, data))
        typer.echo(f"{summary(survey, people, [one.sentence for one in judged])}\n")
        if agreed(f"Write {file}?", default=True):
            return data
    except (KeyboardInterrupt, EOFError):
        typer.echo()
    typer.echo("Stopped. Nothing was written.", err=True)
    raise typer.Exit(1)


def _command(*words: str) -> str:
    """A command to copy into a shell."""
    return shlex.join(["deniable", *words])


def check(
    survey: Annotated[
        str, typer.Argument(help="A survey (TOML), a manifest (JSON), or a collector's address.")
    ],
    respondents: Annotated[
        int | None,
        typer.Option(
            "--respondents",
            "-n",
            min=1,
            help="Number of respondents to plan for (default: from the survey).",
        ),
    ] = None,
    manifest: Annotated[
        Path | None, typer.Option(help="Write the manifest, as it is published, to this file.")
    ] = None,
    layout: Layout = Format.table,
) -> None:
    """Review a survey before you publish it: privacy cost, expected error, problems.

    Ends with exit code 1 if a question has too few people: if its result would tell next to
    nothing.
    """
    from deniable.cli.verdicts import verdicts
    from deniable.errors import InvalidArgument
    from deniable.views.tables import show

    if manifest is not None and manifest.exists():
        raise InvalidArgument("--manifest", str(manifest), "a file that does not exist yet")
    found, expected, redesign = _source(survey)
    judged = verdicts(found.collection, respondents or expected, redesign)
    if layout is Format.table:
        _explain(found, judged)
    else:
        show([one.to_row() for one in judged], layout)
    if manifest is not None:
        manifest.write_bytes(found.collection.manifest)
        typer.echo(f"manifest: {manifest}, digest {found.collection.digest}", err=True)
    if any(one.hopeless for one in judged):
        raise typer.Exit(1)


#: What the table of `check` shows of each question; errors are told in sentences below it.
_SHOWN = ("question", "answers", "mechanism", "epsilon", "bytes", "reports")


def _explain(survey: Survey, judged: list[Verdict]) -> None:
    """A survey in words, and a table of its questions."""
    from rich.console import Console

    from deniable.cli.explain import sentences
    from deniable.views.tables import plain, show

    console = Console(highlight=False)
    console.print(plain(survey.texts.title), style="bold", markup=False)
    for sentence in sentences(survey.collection):
        console.print(sentence, markup=False)
    rows = [{name: one.to_row()[name] for name in _SHOWN} for one in judged]
    show(rows, Format.table, "epsilon per person; reports expected in one round")
    for one in judged:
        style = "red" if one.hopeless else None
        console.print(one.sentence, style=style, markup=False)
        if one.wishes:
            title = f"{one.question.name}: 95 % errors, by what you want to know"
            show(one.wished, Format.table, title)


def _source(source: str) -> tuple[Survey, int, Redesign | None]:
    """A survey, the respondents that it expects, and how it would be with another epsilon."""
    from functools import partial

    from deniable.collection.manifest import Collection
    from deniable.collection.survey import RESPONDENTS, Survey, mechanism_of, read_source, survey_of
    from deniable.collection.transport import Transport
    from deniable.collection.wording import Texts

    if "://" in source:
        transport = Transport(source, insecure=True)
        collection = Collection.from_manifest(transport.get("/v2/manifest"))
        texts = Texts.from_document(transport.get("/v2/texts")).check(collection)
        return Survey(collection, texts), RESPONDENTS, None
    data = read_source(source)
    if isinstance(data, bytes):
        collection = Collection.from_manifest(data)
        return Survey(collection, Texts.plain(collection)), RESPONDENTS, None
    return survey_of(data), data.get("respondents", RESPONDENTS), partial(mechanism_of, data)


def serve(
    survey: SurveyFile,
    store: Annotated[
        str | None,
        typer.Option(help="A file, or postgresql://... (default: NAME.db beside the survey)."),
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes any free one.")] = 8000,
    proxied: Annotated[
        bool,
        typer.Option(
            "--behind-proxy", help="Trust a reverse proxy and require HTTPS in front of it."
        ),
    ] = False,
    plain: Annotated[
        bool, typer.Option("--plain-http", help="Listen to other machines without encryption.")
    ] = False,
    workers: Annotated[
        int, typer.Option(min=1, help="Number of processes; SIGHUP replaces them one by one.")
    ] = 1,
    rate: Annotated[
        float,
        typer.Option(
            min=1,
            help="Maximum requests per second, all clients together; each worker gets a part.",
        ),
    ] = 20_000,
    connections: Annotated[
        int,
        typer.Option(min=1, help="Maximum requests at the same time; each worker gets its part."),
    ] = 1_000,
    body: Annotated[int, typer.Option(min=1, help="Maximum size of a batch, in MB.")] = 64,
    hosts: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host", help="Only answer requests to this host name; may be repeated."
        ),
    ] = None,
    origins: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-origin",
            help="Let pages of this origin (https://...) submit; may be repeated.",
        ),
    ] = None,
    keep_days: Annotated[
        int | None,
        typer.Option(min=1, help="Days to keep reports; then they are only counted."),
    ] = None,
) -> None:
    """Run the collector: a questionnaire, a dashboard and an API.

    Respondents need the key in the environment variable DENIABLE_KEY, if it is set. Partners need
    the one in DENIABLE_PARTNER_KEY to send batches; without it no batch is accepted.
    """
    if workers > 1 and hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as yet there is nobody to replace

    from deniable.collection.survey import read_survey
    from deniable.service.app import Settings, create_app
    from deniable.service.limits import Limits
    from deniable.service.run import bind, check_host
    from deniable.service.run import serve as run
    from deniable.service.store import open_store
    from deniable.service.workers import Assignment, Supervisor

    check_host(host, proxied=proxied, plain=plain)
    address = store or str(Path(survey).with_suffix(".db"))
    opened = open_store(address, read_survey(survey))
    at_once = -(-connections // workers)
    limits = Limits(batch_bytes=body << 20, rate=rate / workers, at_once=at_once)
    keys = os.environ.get(KEY), os.environ.get(PARTNER_KEY)
    named = tuple(hosts or ()), tuple(origins or ())
    settings = Settings(limits, keys[0], proxied, keys[1], *named, keep_days)
    app = create_app(opened, settings)  # refuses bad settings before there is any worker
    listening = bind(host, port)
    opened.packing.warm()
    began = True
    with suppress(KeyboardInterrupt):  # raised anew when all requests have ended
        _greet(opened, address, keys[0], listening.getsockname()[:2])
        if workers == 1:
            run(app, listening, connections=at_once + SPARE)
        else:
            job = Assignment(address, survey, settings, at_once + SPARE)
            began = Supervisor(job, listening, workers).run()
    if not began:
        raise typer.Exit(1)
    typer.echo("stopped")


def _greet(store: Any, address: str, key: str | None, at: tuple[str, int]) -> None:
    """Where everything is. The first token is made here; a log gets neither it nor the key."""
    from urllib.parse import quote

    from deniable.service.access import new_token

    host = f"[{at[0]}]" if ":" in at[0] else at[0]
    where, seen = f"http://{host}:{at[1]}", sys.stdout.isatty()
    answer = f"{where}/answer"
    if key is not None:
        answer += f"#key={quote(key, safe='')}" if seen else f"  (followed by #key= and {KEY})"
    door = f"{where}/  (make a token: {_command('token', _written(store, address), 'analyst')})"
    if seen and not store.tokens():
        door = f"{where}/#token={new_token(store, 'first')}"
    typer.echo(f"{store.texts.title!r}, collection {store.collection.digest[:12]}")
    typer.echo(f"  questionnaire  {answer}")
    typer.echo(f"  dashboard      {door}")
    typer.echo(f"  API            {where}/v2/openapi.json")
    typer.echo(f"  store          {store.place}; stop with Ctrl-C")
    sys.stdout.flush()


def _written(store: Any, address: str) -> str:
    """A store as a command takes it; of a database only what is no secret (PGPASSWORD is one)."""
    if "://" not in address:
        return str(store.place)
    from urllib.parse import quote, urlencode

    from deniable.extras import psycopg

    psycopg()
    from psycopg.conninfo import conninfo_to_dict

    known = conninfo_to_dict(address)
    named = {name: known[name] for name in ("host", "port", "user") if known.get(name)}
    return f"postgresql:///{quote(str(known.get('dbname', '')))}?{urlencode(named, safe='/')}"


def token(
    store: StoreAt,
    name: Annotated[
        str | None, typer.Argument(help="Name of the new token (default: list the names).")
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Forget the token.")] = False,
) -> None:
    """Make a token for an analyst. It is shown once, and only its hash is kept."""
    from deniable.errors import InvalidArgument
    from deniable.service.access import new_token
    from deniable.service.store import open_store

    opened = open_store(store)
    if remove and name is None:
        raise InvalidArgument("name", None, "given: which token to forget")
    if name is None:
        for known in sorted(opened.tokens()):
            typer.echo(known)
    elif not remove:
        typer.echo(new_token(opened, name))
    elif opened.remove_token(name):
        typer.echo(f"the token {name} was forgotten")
    else:
        raise InvalidArgument("name", name, f"one of {', '.join(sorted(opened.tokens()))}")
