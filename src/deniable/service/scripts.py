"""The JavaScript client of a collector: a module that imports what its manifest needs, no more.

Each module of ``clients/js`` knows some mechanisms and kinds of answers; ``families.json`` beside
them says which. What no module knows is left out: devices then refuse the manifest as unsupported.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

_HERE = Path(__file__).parent
#: In a wheel the modules lie beside the pages; in a checkout they are where they are written.
_PACKED = _HERE / "static" / "client"
_WRITTEN = _HERE.parents[2] / "clients" / "js" / "client"
#: Of JavaScript, as far as the client needs it (see `compact`).
TOKEN = re.compile(
    r"""(?P<blank>(?:\s+|//[^\n]*|/\*[\s\S]*?\*/)+)
    |'(?:\\.|[^'\\\n])*' | "(?:\\.|[^"\\\n])*" | `(?:\\.|[^`\\])*`  # texts
    |/(?!\s)(?:\\.|\[(?:\\.|[^]\\\n])*\]|[^[/\\\n])+/  # regular expressions; " / " divides
    |[\w$]+|.""",
    re.VERBOSE,
)
#: A semicolon or a comma before what ends the block or the list anyway.
_IDLE = {";}", ",}", ",]", ",)"}


def client_folder() -> Path:
    """Where the modules of the client are."""
    return _PACKED if _PACKED.is_dir() else _WRITTEN


def client_files() -> dict[str, bytes]:
    """All modules of the client by name, as they are served."""
    paths = sorted(client_folder().glob("*.js"))
    return {path.name: compact(path.read_text()).encode() for path in paths}


@cache
def families() -> Mapping[str, Any]:
    """By module: the mechanisms that it knows, and the keys of each form of the kinds it knows."""
    found: Mapping[str, Any] = json.loads((client_folder() / "families.json").read_text())
    return found


def client_module(manifest: bytes) -> str:
    """The client of a collection, as a module."""
    data = json.loads(manifest)
    used = set(_mechanisms(data["reports"]))
    asked = [(question["kind"], _keys(question)) for question in data["questions"]]
    needed = [
        name
        for name, known in families().items()
        if name != "core"
        and (
            used & set(known["mechanisms"])
            or any(keys in known["kinds"].get(kind, []) for kind, keys in asked)
        )
    ]
    imports = "".join(f"import './client/{name}.js';\n" for name in needed)
    return f"{imports}export {{ Client, DeniableError }} from './client/core.js';\n"


def _mechanisms(data: Any) -> Iterator[str]:
    """The names of all mechanisms, at any depth."""
    if isinstance(data, Mapping):
        if isinstance(data.get("mechanism"), Mapping):
            yield data["mechanism"].get("name", "")
        data = list(data.values())
    if isinstance(data, list):
        for part in data:
            yield from _mechanisms(part)


def _keys(question: Mapping[str, Any]) -> list[str]:
    return sorted(set(question) - {"name", "kind", "optional"})


def compact(source: str) -> str:
    """A module without comments, and without the blanks, semicolons and commas that mean nothing.

    Of JavaScript it knows what the client needs: every statement has its semicolon, no template is
    inside of another, and no regular expression begins with a blank.
    """
    parts: list[str] = []
    for token in TOKEN.finditer(source):
        if token["blank"] is None:
            if parts and parts[-1] + token[0] in _IDLE:
                parts.pop()
            parts.append(token[0])
        elif parts and _touch(parts[-1][-1], source[token.end() : token.end() + 1]):
            parts.append(" ")
    return "".join(parts)


def _touch(left: str, right: str) -> bool:
    """Whether two characters would become one token."""
    return bool(re.fullmatch(r"[\w$]{2}|\+\+|--", left + right))
