"""The HTTP application: a few small endpoints around intake, writer and analysis."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from deniable.collection.batches import MEDIA_TYPE as ARROW
from deniable.collection.manifest import Collection
from deniable.errors import CorruptData, InvalidArgument, StoreUnavailable, TooFew
from deniable.service import metrics as prometheus
from deniable.service.access import Access
from deniable.service.analysis import CHART, FORMATS, Analysis, EstimateQuery, queries_of
from deniable.service.intake import Intake
from deniable.service.limits import BodyBudget, BodyReader, Limits, RequestFilter, Sliced, Slots
from deniable.service.openapi import openapi
from deniable.service.origins import Origins
from deniable.service.pages import page_routes
from deniable.service.problems import Problem
from deniable.service.responses import Outgoing, written
from deniable.service.retention import Retention
from deniable.service.store import Outcome, Store
from deniable.service.writer import Writer

JSON = "application/json"
#: Estimates that are computed at once: of many answers, each takes much memory.
ESTIMATES = 2
#: What any estimate may be asked for with; tasks have parameters of their own.
_PARAMETERS = ("round", "method", "confidence", "simultaneous", "most", "format", "view")
#: The same for everybody, so they are made once.
_COUNTED = Response(b'{"counted":true}', 201, media_type=JSON)
_KNOWN = Response(b'{"counted":false}', 200, media_type=JSON)
_ELSEWHERE = "See /v2/openapi.json for what there is."
_LOG = logging.getLogger("deniable.service")


@dataclass(frozen=True)
class Settings:
    """How a collector behaves."""

    limits: Limits = field(default_factory=Limits)
    #: Respondents must know it, if it is given.
    key: str | None = None
    #: A proxy in front must say that requests came over HTTPS.
    secure: bool = False
    #: Whoever knows it may send batches; without one nobody may.
    partner_key: str | None = None
    #: The names that requests may be addressed to; any, if there are none.
    hosts: tuple[str, ...] = ()
    #: Pages of these origins may read the manifest and send submissions.
    origins: tuple[str, ...] = ()
    #: Days after which reports are only counted; None keeps all.
    keep_days: int | None = None


class Service:
    """The endpoints of one collection."""

    def __init__(
        self, store: Store, settings: Settings, metrics: prometheus.Metrics | None = None
    ) -> None:
        self.store, self.settings = store, settings
        self.collection = store.collection
        self._intake = Intake(store.collection)
        self._writer = Writer(store)
        self._analysis = Analysis(store)
        self._access = Access(store, settings.key, settings.partner_key)
        self._metrics = metrics or prometheus.Metrics()
        limits = settings.limits
        sizes = limits.single_bytes, limits.singles_at_once
        self._singles = BodyBudget(JSON, *sizes, limits.single_seconds, yielding=True)
        sizes = limits.batch_bytes, limits.batches_at_once
        self._batches = BodyBudget(ARROW, *sizes, limits.batch_seconds, limits.batch_pace)
        self._slots = Slots(limits.at_once)
        self._counting = asyncio.Lock()
        self._estimating = asyncio.Semaphore(ESTIMATES)
        self._outgoing = Outgoing()
        self._retention: Retention | None = None

    def routes(self) -> list[Route]:
        return [
            Route("/v2/manifest", self.manifest),
            Route("/v2/texts", self.texts),
            Route("/v2/admission", self.admission),
            Route("/v2/batches", self.submit_batch, methods=["POST"]),
            Route("/v2/status", self.status),
            Route("/v2/estimates/{name}", self.estimates),
            Route("/v2/metrics", self.metrics),
            Route("/v2/health", self.health),
            Route("/v2/openapi.json", self.document),
        ]

    async def manifest(self, _: Request) -> Response:
        return _document(self.collection.manifest, self.collection.digest)

    async def texts(self, _: Request) -> Response:
        return _document(self.store.texts.document, self.store.texts.digest)

    async def admission(self, request: Request) -> Response:
        """What a respondent needs; refuses a key that would be refused with a submission."""
        if "authorization" in request.headers:
            self._access.require_key(request.scope)
        found = _json({"needs": self._access.needs, "open": True})
        found.headers["Cache-Control"] = "no-store"
        return found

    async def submit(self, scope: Scope, receive: Receive) -> Response:
        """The answer to a single submission, or the refusal of one."""
        try:
            if scope["method"] != "POST":
                return self.on_method(None, HTTPException(405, headers={"Allow": "POST"}))
            return await self._submitted(scope, receive)
        except Problem as problem:
            return self.on_problem(None, problem)
        except (StoreUnavailable, CorruptData) as error:
            return self.on_unavailable(None, error)

    async def _submitted(self, scope: Scope, receive: Receive) -> Response:
        self._access.require_key(scope)
        with BodyReader(self._singles) as reader:
            body = await reader.body(scope, receive)
            name, packed = self._intake.single(body)
        with self._slots:
            outcome = await self._writer.add(name, packed)
        return self._answer("deniable_submissions_total", outcome)

    async def submit_batch(self, request: Request) -> Response:
        self._access.require_partner(request.headers)
        with BodyReader(self._batches) as reader:
            body = await reader.body(request.scope, request.receive)
            with self._slots:
                async with self._counting:  # one at a time: it takes several times its length
                    name, tallies = await run_in_threadpool(self._intake.batch, body)
                outcome = await self._writer.add(name, body, tallies)
        return self._answer("deniable_batches_total", outcome)

    def _answer(self, metric: str, outcome: Outcome) -> Response:
        self._metrics.count(metric, "outcome", outcome.name)
        if outcome is Outcome.conflict:
            raise Problem("id-used", "Another submission with other contents has it.", "/id")
        return _COUNTED if outcome is Outcome.counted else _KNOWN

    async def status(self, request: Request) -> Response:
        await self._access.require_analyst(request.headers)
        with self._slots:
            return _json(await run_in_threadpool(self._analysis.status))

    async def estimates(self, request: Request) -> Response:
        await self._access.require_analyst(request.headers)
        given = request.query_params
        form, most = _format(given.get("format", "json")), _most(given.get("most"))
        ask: Any = self._analysis.estimate
        if form == CHART:
            ask = partial(self._analysis.chart, view=given.get("view"))
        elif "view" in given:
            raise Problem("invalid-choice", f"view is for format={CHART}")
        try:
            query = _query(self.collection, request.path_params["name"], given)
            with self._slots:
                async with self._estimating:
                    found = await run_in_threadpool(ask, query, most)
        except (InvalidArgument, TooFew) as refused:
            raise Problem("invalid-choice", str(refused)) from None
        if found is None:
            raise Problem("not-found", "There are no reports of this question and round yet.")
        return _json(found) if form == CHART else await written(found, form, self._outgoing)

    async def metrics(self, request: Request) -> Response:
        await self._access.require_analyst(request.headers)
        with self._slots:
            numbers = await run_in_threadpool(self.store.numbers)
        text = self._metrics.text(numbers)
        return Response(text, media_type=prometheus.MEDIA_TYPE)

    async def health(self, _: Request) -> Response:
        await self._access.tokens()  # any small read
        return _json({"status": "ok"})

    async def document(self, _: Request) -> Response:
        return _json(openapi(self.collection, self.store.texts))

    def on_problem(self, _: Request | None, error: Exception) -> Response:
        assert isinstance(error, Problem)
        self._metrics.count("deniable_refusals_total", "type", error.kind)
        return error.response()

    def on_not_found(self, _: Request, error: Exception) -> Response:
        return self.on_problem(None, Problem("not-found", _ELSEWHERE))

    def on_method(self, _: Request | None, error: Exception) -> Response:
        response = self.on_problem(None, Problem("method", _ELSEWHERE))
        response.headers.update(getattr(error, "headers", None) or {})
        return response

    def on_unavailable(self, _: Request | None, error: Exception) -> Response:
        """The reason is for the operator's log, not for the world."""
        _LOG.error("%s", error)
        detail = "Send the same again later: it is counted once."
        return self.on_problem(None, Problem("unavailable", detail))

    def start(self) -> None:
        if self.settings.keep_days is not None:
            self._retention = Retention(self.store, self.settings.keep_days)

    def close(self) -> None:
        if self._retention is not None:
            self._retention.close()
        if self._writer.close():
            self.store.close()


class Submissions:
    """Answers single submissions itself, and leaves everything else to the application.

    Here every microsecond counts: routing, request and response objects of the framework cost as
    much as all that is done with a submission.
    """

    def __init__(
        self, app: ASGIApp, submit: Callable[[Scope, Receive], Awaitable[Response]]
    ) -> None:
        self._app, self._submit = app, submit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] == "/v2/submissions":
            response = await self._submit(scope, receive)
            await response(scope, receive, send)
        else:
            await self._app(scope, receive, send)


def create_app(
    store: Store, settings: Settings | None = None, metrics: prometheus.Metrics | None = None
) -> ASGIApp:
    """The application of a store; it closes the store when it ends."""
    chosen = settings or Settings()
    service = Service(store, chosen, metrics)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        service.start()
        yield
        service.close()

    app = Starlette(
        routes=[*service.routes(), *page_routes(store.collection.manifest)],
        exception_handlers={
            Problem: service.on_problem,
            404: service.on_not_found,
            405: service.on_method,
            StoreUnavailable: service.on_unavailable,
            CorruptData: service.on_unavailable,
        },
        lifespan=lifespan,
    )
    # A redirect would name http:// behind a proxy: reports would travel without encryption.
    app.router.redirect_slashes = False
    inner: ASGIApp = Submissions(Sliced(app), service.submit)
    if chosen.origins:
        inner = Origins(inner, chosen.origins, asked=True)
    rate, refuse = chosen.limits.rate, service.on_problem
    outer = RequestFilter(inner, rate, refuse, secure=chosen.secure, hosts=chosen.hosts)
    return Origins(outer, chosen.origins) if chosen.origins else outer


def _query(collection: Collection, name: str, given: QueryParams) -> EstimateQuery:
    """What is asked about a question; its task has parameters of its own."""
    own = queries_of(collection.asked(name))
    if unknown := set(given) - {*_PARAMETERS, *own}:
        known = ", ".join(sorted({*_PARAMETERS, *own}))
        detail = f"Unknown parameter {min(unknown)!r}; the parameters are {known}."
        raise Problem("invalid-choice", detail)
    try:
        number = int(given.get("round", "1"))
        confidence = float(given.get("confidence", "0.95"))
    except ValueError:
        raise Problem("invalid-choice", "round and confidence are numbers") from None
    if not 1 <= number <= collection.rounds:
        raise Problem(
            "invalid-choice", f"The rounds of this collection are 1..{collection.rounds}."
        )
    simultaneous = given.get("simultaneous", "false")
    if simultaneous not in ("true", "false"):
        raise Problem("invalid-choice", "simultaneous is true or false")
    choices = tuple((query, tuple(given.getlist(query))) for query in own if query in given)
    method = given.get("method")
    return EstimateQuery(name, number, method, confidence, simultaneous == "true", choices)


def _format(text: str) -> str:
    if text not in FORMATS:
        raise Problem("invalid-choice", f"format is one of {', '.join(FORMATS)}")
    return text


def _most(text: str | None) -> int | None:
    if text is not None and not re.fullmatch("[1-9][0-9]{0,8}", text):
        raise Problem("invalid-choice", "most is a whole number of at least 1")
    return None if text is None else int(text)


def _document(body: bytes, digest: str) -> Response:
    """A document that is named by its digest."""
    return Response(body, 200, {"ETag": f'"{digest}"', "Cache-Control": "no-cache"}, JSON)


def _json(data: Any) -> Response:
    return Response(msgspec.json.encode(data), media_type=JSON)
