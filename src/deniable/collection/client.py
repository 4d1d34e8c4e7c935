"""The client of a collection: answers in, randomised reports out."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from deniable.collection.batches import MEDIA_TYPE, Batch
from deniable.collection.book import DIGITS, Book, answered
from deniable.collection.manifest import Collection
from deniable.collection.questions import Question
from deniable.collection.responding import coin_words, indices, respond
from deniable.collection.survey import read_survey
from deniable.collection.transport import Transport
from deniable.collection.wire import Submission, fresh_id
from deniable.errors import (
    CorruptData,
    InvalidArgument,
    MemoLost,
    MismatchError,
    TooMuch,
    require_int,
)
from deniable.longitudinal.memo import Memo
from deniable.longitudinal.memo_file import FileMemo
from deniable.privacy import check_epsilon
from deniable.randomness import WORD_BYTES, ByteCoins
from deniable.reports import ID_BYTES
from deniable.storage.database import Database

#: Respondents in one batch.
BATCH_ROWS = 500_000
#: Collections that may spend more are refused, unless the caller allows more.
MOST_EPSILON = 8.0


class Client:
    """Takes part in a collection.

    ``source`` is the address of a collector, or a file: a survey (TOML) or a published manifest;
    with a file ``url`` says where to send to. ``digest``, if given, must be that of the
    manifest: whoever was told it elsewhere knows what it answers. A collection that may spend more
    than ``max_epsilon`` (8 unless given) is refused. ``key`` is needed where the collector asks for
    one.

    ``memo`` is a folder for what one respondent's device remembers: what was kept for remembered
    answers, what was sent in each round, and which collections were answered at which address.
    Another collection at such an address is refused (`CollectionChanged`) until ``another`` is its
    digest. Without a folder nothing of this is remembered.
    """

    def __init__(
        self,
        source: str | os.PathLike[str],
        *,
        url: str | None = None,
        digest: str | None = None,
        memo: str | os.PathLike[str] | None = None,
        another: str | None = None,
        max_epsilon: float = MOST_EPSILON,
        key: str | None = None,
        timeout: float = 30.0,
        attempts: int = 6,
        insecure: bool = False,
    ) -> None:
        if not isinstance(source, (str, os.PathLike)):
            raise InvalidArgument("source", source, "the address of a collector, or a file")
        if memo is not None and not (isinstance(memo, (str, os.PathLike)) and os.fspath(memo)):
            raise InvalidArgument("memo", memo, "a folder")
        check_epsilon(max_epsilon, "max_epsilon")
        if key is not None and not (isinstance(key, str) and key.isascii() and key.isprintable()):
            raise InvalidArgument("key", "...", "printable ASCII")
        self._headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        remote = isinstance(source, str) and "://" in source
        address = str(source) if remote else url
        self._transport = None
        if address is not None:
            options: dict[str, Any] = {"timeout": timeout, "attempts": attempts}
            self._transport = Transport(address, insecure=insecure, **options)
        self._memo = None if memo is None else Path(memo)
        self._another = another
        #: The answers of previews, by round and by the bytes that would be sent.
        self._previews: dict[int, dict[bytes, list[int]]] = {}
        try:
            self.collection = (
                Collection.from_manifest(self._sending.get("/v1/manifest"))
                if remote
                else read_survey(Path(source))
            )
            self._check(digest, max_epsilon)
        except BaseException:
            self.close()
            raise

    def _check(self, digest: str | None, max_epsilon: float) -> None:
        """Refuse a collection that is not the one that was meant, or spends too much."""
        collection = self.collection
        if digest is not None and digest != collection.digest:
            found = f"this is collection {collection.digest}"
            raise MismatchError(f"{found}, not {digest}: nothing was answered")
        if collection.epsilon > max_epsilon:
            raise TooMuch(
                f"this collection may spend epsilon {collection.epsilon:.6g}, and at most "
                f"{max_epsilon:.6g} is allowed: nothing was answered. To allow more: "
                "Client(..., max_epsilon=...)"
            )
        if self._memo is not None and self._transport is not None:
            self._book.check(self._transport.address, collection, self._another)

    def __repr__(self) -> str:
        return f"<client of {self.collection.title!r}, {self.collection.digest[:12]}>"

    def answer(self, answers: Mapping[str, Any], round: int = 1) -> bool:  # noqa: A002
        """Randomise the answers of one respondent and send them.

        True if they were counted now, False if this very submission had been counted before. Every
        error of the way there carries the submission: send that again with
        ``client.send(error.prepared)``. To answer anew would count, and cost, twice. With a folder
        for the memo, a round that was sent once is only ever sent again as it was.
        """
        values = self._values(answers, round)
        if self._memo is None:
            return self._post(self._made(values, round))
        return self._post(self._kept(values, round))

    def prepare(self, answers: Mapping[str, Any], round: int = 1) -> Submission:  # noqa: A002
        """What would be sent: look at it, then send it.

        With a folder for the memo, the same answers give the same submission, other answers another
        one; only `send` notes anything about the answers. Once a round was sent, `prepare` returns
        what was sent, whatever the answers. Without a folder, preparing twice makes two submissions
        that both count, and both cost.
        """
        values = self._values(answers, round)
        if self._memo is None:
            return self._made(values, round)
        with self._book.held() as noted:
            if sent := self._sent(round, answered(noted, self.collection)):
                return sent
            shown = self._made(values, round, record=False)
        self._previews.setdefault(round, {})[shown.to_json()] = values
        return shown

    def send(self, prepared: Submission | Batch) -> bool:
        """Send what was prepared; again with the same id until the collector answers.

        With a folder for the memo, its keys and the submission are on the disk before the first
        byte leaves. Every error has ``prepared``, what to send again.
        """
        if not isinstance(prepared, Submission | Batch):
            raise InvalidArgument("prepared", prepared, "what prepare or privatize_table made")
        if self._memo is not None and isinstance(prepared, Submission):
            with _carrying(prepared):
                self._keep_prepared(prepared)
        return self._post(prepared)

    def _post(self, prepared: Submission | Batch) -> bool:
        if isinstance(prepared, Submission):
            path, kind, body = "/v1/submissions", "application/json", prepared.to_json()
        else:
            path, kind, body = "/v1/batches", MEDIA_TYPE, prepared.body
        with _carrying(prepared):
            answer = self._sending.post(path, body, {"Content-Type": kind, **self._headers})
        return answer.status == 201

    # ---- what is remembered of a round

    def _values(self, answers: Mapping[str, Any], number: int) -> list[int]:
        require_int("round", number, 1, self.collection.rounds)
        return indices(self.collection, answers)

    def _keep_prepared(self, prepared: Submission) -> None:
        """Keep what was prepared, or refuse it if something else was sent in its round."""
        if prepared.collection != self.collection.digest:
            raise MismatchError(f"this was prepared for collection {prepared.collection}")
        number = require_int("round", prepared.round, 1, self.collection.rounds)
        values = self._previews.get(number, {}).get(prepared.to_json())
        kept = self._kept(values, number, prepared)
        if kept != prepared:
            error = MismatchError(f"round {number} was sent already, with other reports")
            error.prepared = kept
            raise error
        self._previews.pop(number, None)

    def _kept(
        self, values: list[int] | None, number: int, shown: Submission | None = None
    ) -> Submission:
        """The submission of a round: the one that was sent, or one that is kept from now on.

        When this returns, its cost, its keys and its bytes are on the disk.
        """
        address = self._sending.address
        with self._book.charging(address, self.collection, self._another, number) as before:
            kept = self._sent(number, before)
            if kept is None:
                kept = self._shown(values, number, shown)
                self._round(number).place_file(kept.to_json())
            else:  # whoever placed it may have died before the folder was synced
                self._round(number).sync_folder()
            self._coins(number).remove_file()
        return kept

    def _shown(self, values: list[int] | None, number: int, shown: Submission | None) -> Submission:
        """Make the submission of a round, its keys on record; it must be what was shown."""
        if values is None or (shown and self._made(values, number, record=False) != shown):
            allowed = "what this client prepared, with nothing sent since: prepare it again"
            raise InvalidArgument("prepared", shown, allowed)
        return self._made(values, number)

    def _sent(self, number: int, noted: set[int]) -> Submission | None:
        """What was sent in a round; it must be there if the round is among those noted."""
        file = self._round(number)
        try:
            kept = Submission.from_json(file.read_file())
        except FileNotFoundError:
            if number in noted:
                sent = f"{file.path} is missing, and round {number} was sent"
                raise MemoLost(f"{sent}: nothing else is sent in it") from None
            return None
        if kept.collection != self.collection.digest:
            raise MismatchError(f"{file.path} belongs to collection {kept.collection}")
        return kept

    def _made(self, values: list[int], number: int, *, record: bool = True) -> Submission:
        collection = self.collection
        size = coin_words(collection) * WORD_BYTES
        name, drawn = self._draw(number, size)
        coins = ByteCoins(drawn)
        rows = respond(collection, values, coins, self._memos(), record=record)
        coins.finish()
        return Submission(collection.digest, name, rows, number)

    def _draw(self, number: int, size: int) -> tuple[str, bytes]:
        """An id and coins: fresh ones, or, with a folder, those of the round."""
        if self._memo is None:
            drawn = os.urandom(size)
            return fresh_id(), drawn
        file = self._coins(number)
        try:
            drawn = file.read_file()
        except FileNotFoundError:
            drawn = bytes.fromhex(fresh_id()) + os.urandom(size)
            file.place_file(drawn)
        if len(drawn) != ID_BYTES + size:
            raise CorruptData(f"{file.path} is damaged ({len(drawn)} bytes)")
        return drawn[:ID_BYTES].hex(), drawn[ID_BYTES:]

    def _round(self, number: int) -> Database:
        return Database(self._file(f"round-{number}"))

    def _coins(self, number: int) -> Database:
        return Database(self._file(f"round-{number}.coins"))

    # ---- many records

    def privatize_table(
        self,
        table: Any,
        round: int = 1,  # noqa: A002
        *,
        rows: int = BATCH_ROWS,
    ) -> Iterator[Batch]:
        """Randomise many records, one respondent a row: batches of at most ``rows``.

        ``table`` is a Parquet file, a pandas or Polars frame, or an Arrow table with a column
        for each question. What a batch does not say is who is in it, but its rows have the order of
        the table.
        """
        from deniable.collection.tables import privatized

        require_int("round", round, 1, self.collection.rounds)
        require_int("rows", rows, 1, 1 << 31)
        return privatized(self.collection, table, round, rows)

    def send_all(self, batches: Iterable[Batch]) -> int:
        """Send many batches; returns how many respondents were counted now.

        If the collector does not answer, send ``error.prepared`` again and then the rest of the
        same ``batches``: to privatise the table anew would count those before twice.
        """
        return sum(batch.n for batch in batches if self.send(batch))

    def enrol(self) -> None:
        """Begin the memos of a respondent who takes part in rounds: once, with their consent.

        If a crash or a full disk interrupts it, enrol again: that begins those that are missing.
        Once a memo was used, a missing one is lost, and none is begun in its place (`MemoLost`).
        """
        collection = self.collection
        holding: AbstractContextManager[Any] = self._book.held()
        if self._transport is not None:
            holding = self._book.charging(self._transport.address, collection, self._another)
        with holding:
            asked = [*filter(collection.remembered, collection.questions)]
            missing = [one for one in asked if not FileMemo.traces(self._file(one.name))]
            if missing and self._used([one for one in asked if one not in missing]):
                path = self._file(missing[0].name)
                raise MemoLost(
                    f"{path} is missing, and the memos of this collection were used. Put its "
                    "newest copy back: no other one is begun in its place."
                )
            for question in missing or asked:
                mechanism: Any = question.mechanism
                most = collection.changes + 1
                FileMemo.enrol(self._file(question.name), mechanism, collection.digest, most=most)

    def _used(self, begun: Iterable[Question]) -> bool:
        """Whether a memo may have been used: of those that are there, or to send a round."""
        if any(self._folder.glob(self._file("round-*[0-9]").name)):
            return True
        return any(memo.keys_used for memo in self._memos(begun).values())

    def close(self) -> None:
        """Close the connection."""
        if self._transport is not None:
            self._transport.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def _sending(self) -> Transport:
        if self._transport is None:
            raise InvalidArgument("url", None, "given: the address of the collector to send to")
        return self._transport

    @property
    def _folder(self) -> Path:
        if self._memo is None:
            raise InvalidArgument("memo", None, "a folder: this collection has rounds")
        return self._memo

    @property
    def _book(self) -> Book:
        return Book(self._folder)

    def _file(self, name: str) -> Path:
        return self._folder / f"{self.collection.digest[:DIGITS]}-{name}"

    def _memos(self, questions: Iterable[Question] | None = None) -> dict[str, Memo]:
        collection = self.collection
        memos: dict[str, Memo] = {}
        asked = collection.questions if questions is None else questions
        for question in filter(collection.remembered, asked):
            mechanism: Any = question.mechanism
            memos[question.name] = FileMemo(self._file(question.name), mechanism, collection.digest)
        return memos


@contextmanager
def _carrying(prepared: Submission | Batch) -> Iterator[None]:
    """Errors carry what to send again, whatever went wrong."""
    try:
        yield
    except Exception as error:
        vars(error).setdefault("prepared", prepared)
        raise
