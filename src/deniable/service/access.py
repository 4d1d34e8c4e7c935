"""Who may do what: analysts have tokens, partners a key, and respondents may need another."""

from __future__ import annotations

import asyncio
import re
import secrets
import time

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.types import Scope

from deniable.errors import InvalidArgument
from deniable.service.problems import Problem
from deniable.service.store import Store
from deniable.service.store.base import hash_token, token_fits

#: Characters that a key must have: shorter ones can be guessed.
SHORTEST = 8
_KEY = re.compile(rf"[!-~][ -~]{{{SHORTEST - 2},998}}[!-~]")
#: Seconds until a token that was made or removed elsewhere is noticed.
FRESH = 1.0


class Access:
    """Tokens are compared by their hashes, in constant time."""

    def __init__(
        self, store: Store, key: str | None = None, partner_key: str | None = None
    ) -> None:
        if key is not None and key == partner_key:
            raise InvalidArgument("DENIABLE_PARTNER_KEY", "...", "another key than DENIABLE_KEY")
        self._store = store
        self._key = _hashed("DENIABLE_KEY", key)
        self._partner_key = _hashed("DENIABLE_PARTNER_KEY", partner_key)
        self._tokens: list[bytes] = []
        self._read = -FRESH
        self._reading: asyncio.Task[None] | None = None

    @property
    def needs(self) -> str:
        """What a respondent must have."""
        return "nothing" if self._key is None else "key"

    async def require_analyst(self, headers: Headers) -> None:
        """Refuse whoever has no token."""
        if not token_fits(_bearer(headers), await self.tokens()):
            raise Problem("no-token", "Send `Authorization: Bearer <token>`; see `deniable token`.")

    async def tokens(self) -> list[bytes]:
        """The hashes of the tokens. However many ask, one thread reads, and the loop goes on."""
        if time.monotonic() - self._read >= FRESH:
            if self._reading is None:
                self._reading = asyncio.create_task(self._refresh())
                self._reading.add_done_callback(_looked_at)
            await asyncio.shield(self._reading)
        return self._tokens

    async def _refresh(self) -> None:
        now = time.monotonic()
        try:
            found = await run_in_threadpool(self._store.tokens)
            self._tokens, self._read = list(found.values()), now
        finally:
            self._reading = None

    def require_key(self, scope: Scope) -> None:
        """Refuse whoever lacks the key, if there is one."""
        if self._key is None:
            return
        if not token_fits(_bearer(Headers(scope=scope)), [self._key]):
            raise Problem("no-key", "Send `Authorization: Bearer <key>`.")

    def require_partner(self, headers: Headers) -> None:
        """Refuse whoever lacks the partners' key; without one there are no partners."""
        if self._partner_key is None:
            raise Problem("no-key", "This collector takes no batches; see DENIABLE_PARTNER_KEY.")
        if not token_fits(_bearer(headers), [self._partner_key]):
            raise Problem("no-key", "Send `Authorization: Bearer <key>` with the partners' key.")


def new_token(store: Store, name: str) -> str:
    """Make a token and keep its hash: this is the only time that it is seen."""
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise InvalidArgument("name", name, "a name that can be printed")
    token = secrets.token_urlsafe(32)
    store.add_token(name, hash_token(token))
    return token


def _looked_at(task: asyncio.Task[None]) -> None:
    """All who asked may be gone before it fails: asyncio would log that as a bug."""
    if not task.cancelled():
        task.exception()


def _hashed(name: str, key: str | None) -> bytes | None:
    """The hash of a key that every client can send; no key is shown in an error.

    A variable that is there but blank is a slip: it must not open what was to be closed.
    """
    if key is None:
        return None
    if not _KEY.fullmatch(key):
        allowed = (
            f"{SHORTEST} to 1000 printable ASCII characters without blanks at either end, or not"
            " set at all: a key travels in a header. `openssl rand -hex 20` makes a good one"
        )
        raise InvalidArgument(name, "..." if key.strip() else key, allowed)
    return hash_token(key)


def _bearer(headers: Headers) -> str:
    kind, _, value = headers.get("authorization", "").partition(" ")
    return value.strip() if kind.lower() == "bearer" else ""
