"""Where submissions are kept: an SQLite file by default, PostgreSQL by its address."""

from __future__ import annotations

from deniable.collection.manifest import Collection
from deniable.service.store.base import Outcome as Outcome
from deniable.service.store.base import Store as Store


def open_store(address: str, collection: Collection | None = None) -> Store:
    """The store at an address; with a collection it is created where there is none.

    ``address`` is a file, or begins with postgresql://.
    """
    if address.startswith(("postgresql://", "postgres://")):
        from deniable.service.store.postgres import PostgresStore

        return PostgresStore.open(address, collection)
    from deniable.service.store.sqlite import SQLiteStore

    return SQLiteStore.open(address, collection)
