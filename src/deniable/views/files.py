"""Charts in notebooks and files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from deniable.errors import InvalidArgument
from deniable.extras import altair
from deniable.views.charts import printed

FORMATS = (".html", ".png", ".svg")


class _InsideScript(json.JSONEncoder):
    """JSON that can stand in a page's script: no label can end the script."""

    def encode(self, o: Any) -> str:
        return super().encode(o).replace("<", "\\u003c")


def wrapped(spec: Any) -> Any:
    """A specification as a chart of Altair, for notebooks; a chart stays as it is."""
    return altair().Chart.from_dict(spec) if isinstance(spec, dict) else spec


def check_path(path: Path) -> Path:
    """Refuse a file that no chart can be saved to, before any work is done for it."""
    if path.suffix.lower() not in FORMATS:
        raise InvalidArgument("chart", str(path), f"a file name that ends in {', '.join(FORMATS)}")
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def save(chart: Any, path: Path, scale: float = 2) -> Path:
    """Write a chart as .html (works offline), .png (``scale`` times as large) or .svg."""
    kind = check_path(path).suffix.lower().removeprefix(".")
    options: dict[str, Any] = {"scale_factor": scale}
    if kind == "html":
        options = {"inline": True, "json_kwds": {"cls": _InsideScript}}
    picture = printed(chart) if isinstance(chart, dict) else chart
    wrapped(picture).save(str(path), format=kind, **options)
    return path
