"""The pages that a collector serves; everything they need is in the package."""

from __future__ import annotations

from starlette.routing import Route

from deniable.collection.manifest import Collection


def page_routes(collection: Collection) -> list[Route]:
    """Routes of the pages."""
    return []
