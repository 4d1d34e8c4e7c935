"""What a store is opened for, and whether it is what the store was made for.

A survey is designed once. Its skeleton is the survey file without its wordings. While the skeleton
is the same, the manifest that was kept is served, whatever this version of the software would
design, and wordings may be corrected. A manifest must be the very one that was kept.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from deniable.collection.manifest import Collection
from deniable.collection.survey import Survey
from deniable.collection.wording import Texts
from deniable.errors import CorruptData, ManifestRefused, MismatchError, require_type

#: The version of the tables, and the one before, which `deniable upgrade` brings to it.
SCHEMA, BEFORE = 3, 2
#: Columns that the table `collection` had before, whatever version it named.
OLD_COLUMNS = 2
_REMEDY = "a survey that changed needs a store of its own (--store another.db)"


def check_store(found: Sequence[Any] | None, survey: Survey | None) -> Collection:
    """The collection that a store was made for, if that is what it is opened for."""
    if found is None:
        raise CorruptData("this is not a store of submissions, or its first line is missing")
    if len(found) == OLD_COLUMNS:
        raise MismatchError("the store was made by version 0.1, which was never released")
    schema, manifest, skeleton, *_ = found
    if (type(schema), type(manifest), type(skeleton)) != (int, bytes, bytes):
        raise CorruptData("the store is damaged: what it says about its collection is no manifest")
    if schema != SCHEMA:
        raise MismatchError(_other_version(schema))
    kept = _kept(manifest)
    if survey is None:
        return kept
    if skeleton and survey.skeleton:
        if survey.skeleton != skeleton:
            key = difference(json.loads(skeleton), json.loads(survey.skeleton))
            raise MismatchError(f"the store was made for another survey ({key} differs): {_REMEDY}")
    elif kept.digest != survey.collection.digest:
        digests = f"{kept.digest[:12]}, not {survey.collection.digest[:12]}"
        raise MismatchError(f"the store holds collection {digests}: {_REMEDY}")
    return kept


def _other_version(schema: int) -> str:
    told = f"the store has version {schema} of the tables, and this deniable works with {SCHEMA}"
    if schema > SCHEMA:
        return f"{told}: a later release made it; install that one, or a later one"
    if schema == BEFORE:
        return f"{told}: stop its collectors, take a backup, and run `deniable upgrade` on it"
    return told


def _kept(manifest: bytes) -> Collection:
    try:
        return Collection.from_manifest(manifest)
    except ManifestRefused as refused:
        raise CorruptData(f"the store is damaged, or of a later release: {refused}") from refused


def kept_texts(number: Any, document: Any, collection: Collection) -> Texts:
    """The texts that a store has, if they are texts of its collection."""
    try:
        require_type("number", number, int)
        return Texts.from_document(document).check(collection)
    except ValueError as error:
        raise CorruptData("the store is damaged: what people read is no document") from error


def words_of(survey: Survey | None, kept: Collection) -> Texts | None:
    """What a survey says in words about the collection that was kept; manifests say nothing."""
    if survey is None or survey.skeleton is None:
        return None
    return survey.worded(kept)


def difference(one: Any, other: Any, place: str = "") -> str:
    """The first key where two surveys differ, as the file would name it."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted({*one, *other}):
            if key not in one or key not in other or one[key] != other[key]:
                inside = f"{place}.{key}" if place else key
                return difference(one.get(key), other.get(key), inside)
    if isinstance(one, list) and isinstance(other, list):
        for number, (left, right) in enumerate(zip(one, other, strict=False), 1):
            if left != right:
                return difference(left, right, f"{place}[{number}]")
    return place
