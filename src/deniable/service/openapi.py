"""The OpenAPI document of a collection: what can be asked, with examples that work."""

from __future__ import annotations

from typing import Any

from deniable import __version__
from deniable.collection.batches import MEDIA_TYPE as ARROW
from deniable.collection.manifest import Collection
from deniable.collection.wording import Texts
from deniable.service.analysis import FORMATS, queries_of
from deniable.service.problems import MEDIA_TYPE as PROBLEM
from deniable.service.problems import TYPES

_JSON = "application/json"
_BYTES = {"type": "string", "format": "binary"}
#: What each endpoint may refuse.
_SUBMIT = (
    "malformed",
    "no-key",
    "other-collection",
    "id-used",
    "too-large",
    "media-type",
    "impossible-report",
)
_ALWAYS = ("busy", "insecure", "other-host", "unavailable")
_ANALYST = ("no-token", *_ALWAYS)


def openapi(collection: Collection, texts: Texts) -> dict[str, Any]:
    """The document, with the names and lengths of this collection's reports."""
    schemas = {"Submitted": _submitted(collection), "Problem": _problem()}
    return {
        "openapi": "3.1.0",
        "info": {"title": f"Collector of {texts.title!r}", "version": __version__},
        "paths": {
            "/v2/manifest": {"get": _get("The manifest", "manifest", _ALWAYS, _JSON)},
            "/v2/texts": {"get": _get("What people read", "texts", _ALWAYS, _JSON)},
            "/v2/admission": {"get": _admission()},
            "/v2/submissions": {
                "post": _post("submission", _JSON, _ref("Submitted"), [{}, {"key": []}])
            },
            "/v2/batches": {"post": _post("batch", ARROW, _BYTES, [{"partner": []}])},
            "/v2/status": {"get": _get("What is there", "status", _ANALYST, _JSON, analyst=True)},
            "/v2/estimates/{name}": {"get": _estimates(collection)},
            "/v2/metrics": {
                "get": _get("Counters", "metrics", _ANALYST, "text/plain", analyst=True)
            },
            "/v2/health": {"get": _get("Whether the store can be read", "health", _ALWAYS, _JSON)},
            "/v2/openapi.json": {"get": _get("This document", "openapi", _ALWAYS, _JSON)},
        },
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "analyst": {"type": "http", "scheme": "bearer"},
                "key": {"type": "http", "scheme": "bearer"},
                "partner": {"type": "http", "scheme": "bearer"},
            },
        },
    }


def _submitted(collection: Collection) -> dict[str, Any]:
    rows = {}
    for report in collection.reports:
        digits = 2 * report.mechanism.dtype.itemsize
        rows[report.name] = {"type": "string", "pattern": f"^[0-9a-f]{{{digits}}}$"}
    return _exactly(
        {
            "collection": {"const": collection.digest},
            "fields": _exactly({f.name: {"enum": list(f.values)} for f in collection.fields}),
            "id": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
            "reports": _exactly(rows),
            "round": {"type": "integer", "minimum": 1, "maximum": collection.rounds},
        }
    )


def _exactly(properties: dict[str, Any]) -> dict[str, Any]:
    """An object with these keys and no others."""
    head = {"type": "object", "required": list(properties), "additionalProperties": False}
    return {**head, "properties": properties}


def _problem() -> dict[str, Any]:
    text = {"type": "string"}
    properties = {
        "type": {"enum": [f"urn:deniable:{kind}" for kind in TYPES]},
        "title": text,
        "status": {"type": "integer"},
        "detail": text,
        "pointer": text,
    }
    needed = ["type", "title", "status", "detail"]
    return {"type": "object", "properties": properties, "required": needed}


def _get(
    words: str, name: str, refusals: tuple[str, ...], media: str, *, analyst: bool = False
) -> dict[str, Any]:
    responses = {"200": {"description": words, "content": {media: {}}}, **_refusals(refusals)}
    found: dict[str, Any] = {"operationId": name, "summary": words, "responses": responses}
    return {**found, "security": [{"analyst": []}]} if analyst else found


def _admission() -> dict[str, Any]:
    found = _get("What respondents need", "admission", ("no-key", *_ALWAYS), _JSON)
    properties = {"needs": {"enum": ["nothing", "key"]}, "open": {"type": "boolean"}}
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    found["responses"]["200"]["content"] = {_JSON: {"schema": schema}}
    return {**found, "security": [{}, {"key": []}]}


def _post(
    noun: str, media: str, schema: dict[str, Any], security: list[dict[str, Any]]
) -> dict[str, Any]:
    counted = {"type": "object", "properties": {"counted": {"type": "boolean"}}}
    content = {"content": {_JSON: {"schema": {**counted, "required": ["counted"]}}}}
    return {
        "operationId": noun,
        "summary": f"Send a {noun}",
        "security": security,
        "requestBody": {"required": True, "content": {media: {"schema": schema}}},
        "responses": {
            "201": {"description": "Counted, and on a disk", **content},
            "200": {"description": f"This very {noun} had been counted before", **content},
            **_refusals((*_SUBMIT, *_ALWAYS)),
        },
    }


def _estimates(collection: Collection) -> dict[str, Any]:
    names = [question.name for question in collection.questions]
    words = "Numbers with intervals"
    found = _get(
        words, "estimates", ("not-found", "invalid-choice", *_ANALYST), _JSON, analyst=True
    )
    found["responses"]["200"]["content"] |= {"text/csv": {}, ARROW: {}}
    rounds = {"type": "integer", "minimum": 1, "maximum": collection.rounds}
    query = {
        "round": rounds,
        "method": {"type": "string"},
        "confidence": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        "simultaneous": {"type": "boolean"},
        "most": {"type": "integer", "minimum": 1, "maximum": 999_999_999},
        "format": {"enum": list(FORMATS)},
        "view": {"type": "string"},
    }
    path = {"name": "name", "in": "path", "required": True, "schema": {"enum": names}}
    options = [{"name": name, "in": "query", "schema": schema} for name, schema in query.items()]
    return {**found, "parameters": [path, *options, *_own(collection)]}


def _own(collection: Collection) -> list[dict[str, Any]]:
    """The parameters that only some questions have."""
    text: dict[str, Any] = {"type": "string"}
    found = {}
    for question in collection.questions:
        for name, query in queries_of(collection.asked(question.name)).items():
            schema = {"type": "array", "items": text} if query.several else text
            words = f"{query.label} ({query.hint})" if query.hint else query.label
            found[name] = {"name": name, "in": "query", "description": words, "schema": schema}
    return list(found.values())


def _refusals(kinds: tuple[str, ...]) -> dict[str, Any]:
    """The responses of some problems; those with one status share it."""
    found: dict[str, Any] = {}
    for kind in kinds:
        status, title = TYPES[kind]
        before = found.get(str(status), {}).get("description")
        words = title if before is None else f"{before}; {title}"
        schema = {PROBLEM: {"schema": _ref("Problem")}}
        found[str(status)] = {"description": words, "content": schema}
    return found


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}
