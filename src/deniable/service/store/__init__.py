"""Where submissions are kept: an SQLite file by default, PostgreSQL by its address."""

from __future__ import annotations

import re

from deniable.collection.manifest import Collection
from deniable.collection.survey import Survey
from deniable.collection.wording import Texts
from deniable.errors import InvalidArgument
from deniable.service.store.base import Outcome as Outcome
from deniable.service.store.base import Store as Store

#: What is meant as an address, and may hold a password: no file is made of it, and it is not shown.
_ADDRESS = re.compile(
    r"^\s*postgres\w*:|://|:[^/\\]*@|\b(password|host|dbname|user)\s*=", re.IGNORECASE
)


def open_store(
    address: str, survey: Survey | Collection | None = None, *, upgrade: bool = False
) -> Store:
    """The store at an address; with a survey or a collection it is created where there is none.

    ``address`` is a file, or begins with postgresql://. With ``upgrade``, tables of the version
    before are brought to this one; otherwise they are refused.
    """
    if isinstance(survey, Collection):
        survey = Survey(survey, Texts.plain(survey))
    if address.startswith(("postgresql://", "postgres://")):
        from deniable.service.store.postgres import PostgresStore

        return PostgresStore.open(address, survey, upgrade=upgrade)
    if _ADDRESS.search(address):
        raise InvalidArgument("store", "...", "a file, or postgresql://user@host/database")
    from deniable.service.store.sqlite import SQLiteStore

    return SQLiteStore.open(address, survey, upgrade=upgrade)
