"""The client of a collection: answers in, randomised reports out."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from deniable.collection.batches import MEDIA_TYPE, Batch
from deniable.collection.book import DIGITS, Book, answered
from deniable.collection.manifest import Collection, Report
from deniable.collection.reporting import Values, coin_words, drawn, encoded, redrawn, respond
from deniable.collection.survey import read_survey
from deniable.collection.transport import Transport
from deniable.collection.wire import Submission, fresh_id
from deniable.core.reports import ID_BYTES
from deniable.device.memo import Memo
from deniable.device.memo_file import FileMemo
from deniable.errors import (
    CorruptData,
    InvalidArgument,
    MemoLost,
    MismatchError,
    OtherCollection,
    TooMuch,
    require_int,
)
from deniable.privacy import check_epsilon
from deniable.randomness import WORD_BYTES, ByteCoins
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
        self._previews: dict[int, dict[bytes, Values]] = {}
        try:
            self.collection = (
                Collection.from_manifest(self._sending.get("/v2/manifest"))
                if remote
                else read_survey(Path(source)).collection
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
            raise OtherCollection(f"{found}, not {digest}: nothing was answered")
        if collection.epsilon > max_epsilon:
            raise TooMuch(
                f"this collection may spend epsilon {collection.epsilon:.6g}, and at most "
                f"{max_epsilon:.6g} is allowed: nothing was answered. To allow more: "
                "Client(..., max_epsilon=...)"
            )
        if self._memo is not None and self._transport is not None:
            self._book.check(self._transport.address, collection, self._another)

    def __repr__(self) -> str:
        return f"<client of collection {self.collection.digest[:12]}>"

    def begin(self, round: int = 1) -> Sheet:  # noqa: A002
        """What to ask a respondent in a round: a device may draw only some of the questions.

        The draw is made here, before there is any answer. With a folder for the memo it is kept,
        so that beginning again asks the same; once a round was sent, nothing is asked.
        """
        require_int("round", round, 1, self.collection.rounds)
        if self._memo is None:
            return Sheet(self, round, self._draw(round)[1])
        with self._book.held() as noted:
            sent = self._sent(round, answered(noted, self.collection))
            return Sheet(self, round, None if sent else self._draw(round)[1])

    def answer(
        self,
        answers: Mapping[str, Any],
        round: int = 1,  # noqa: A002
        *,
        fields: Mapping[str, str] | None = None,
    ) -> bool:
        """Randomise the answers of one respondent and send them.

        ``fields`` are the public values, where the collection has any. True if they were counted
        now, False if this very submission had been counted before. Every error of the way there
        carries the submission: send that again with ``client.send(error.prepared)``. To answer
        anew would count, and cost, twice. With a folder for the memo, a round that was sent once
        is only ever sent again as it was.
        """
        values = self._values(answers, round)
        public = self._public(fields)
        if self._memo is None:
            return self._post(self._made(values, round, public))
        return self._post(self._kept(values, round, public))

    def prepare(
        self,
        answers: Mapping[str, Any],
        round: int = 1,  # noqa: A002
        *,
        fields: Mapping[str, str] | None = None,
    ) -> Submission:
        """What would be sent: look at it, then send it.

        With a folder for the memo the same answers give the same submission, other answers another
        one; only `send` notes anything about the answers. Once a round was sent, `prepare` returns
        what was sent, whatever the answers. Without a folder, preparing twice makes two submissions
        that both count, and both cost.
        """
        return self._prepared(self._values(answers, round), round, self._public(fields))

    def _prepared(
        self, values: Values, number: int, public: dict[str, str], begun: bytes | None = None
    ) -> Submission:
        if self._memo is None:
            return self._made(values, number, public, begun)
        with self._book.held() as noted:
            if sent := self._sent(number, answered(noted, self.collection)):
                return sent
            shown = self._made(values, number, public, record=False)
        self._previews.setdefault(number, {})[shown.to_json()] = values
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
            path, kind, body = "/v2/submissions", "application/json", prepared.to_json()
        else:
            path, kind, body = "/v2/batches", MEDIA_TYPE, prepared.body
        with _carrying(prepared):
            answer = self._sending.post(path, body, {"Content-Type": kind, **self._headers})
        return answer.status == 201

    # ---- what is remembered of a round

    def _values(
        self, answers: Mapping[str, Any], number: int, asked: Iterable[str] | None = None
    ) -> Values:
        require_int("round", number, 1, self.collection.rounds)
        return encoded(self.collection, answers, None if asked is None else set(asked))

    def _public(self, fields: Mapping[str, str] | None) -> dict[str, str]:
        return self.collection.fields_of(self.collection.stratum(fields or {}))

    def _keep_prepared(self, prepared: Submission) -> None:
        """Keep what was prepared, or refuse it if something else was sent in its round."""
        if prepared.collection != self.collection.digest:
            raise MismatchError(f"this was prepared for collection {prepared.collection}")
        number = require_int("round", prepared.round, 1, self.collection.rounds)
        values = self._previews.get(number, {}).get(prepared.to_json())
        kept = self._kept(values, number, dict(prepared.fields), prepared)
        if kept != prepared:
            error = MismatchError(f"round {number} was sent already, with other reports")
            error.prepared = kept
            raise error
        self._previews.pop(number, None)

    def _kept(
        self,
        values: Values | None,
        number: int,
        public: dict[str, str],
        shown: Submission | None = None,
    ) -> Submission:
        """The submission of a round: the one that was sent, or one that is kept from now on.

        When this returns, its cost, its keys and its bytes are on the disk.
        """
        address = self._sending.address
        with self._book.charging(address, self.collection, self._another, number) as before:
            kept = self._sent(number, before)
            if kept is None:
                kept = self._shown(values, number, public, shown)
                self._round(number).place_file(kept.to_json())
            else:  # whoever placed it may have died before the folder was synced
                self._round(number).sync_folder()
            self._coins(number).remove_file()
        return kept

    def _shown(
        self,
        values: Values | None,
        number: int,
        public: dict[str, str],
        shown: Submission | None,
    ) -> Submission:
        """Make the submission of a round, its keys on record; it must be what was shown."""
        made = values is not None and self._made(values, number, public, record=False)
        if values is None or (shown and made != shown):
            allowed = "what this client prepared, with nothing sent since: prepare it again"
            raise InvalidArgument("prepared", shown, allowed)
        return self._made(values, number, public)

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

    def _made(
        self,
        values: Values,
        number: int,
        public: dict[str, str],
        begun: bytes | None = None,
        *,
        record: bool = True,
    ) -> Submission:
        collection = self.collection
        name, words = self._draw(number)
        if begun is not None:
            words = redrawn(collection, begun, words)
        if missing := [name for name in drawn(collection, words) if name not in values]:
            raise InvalidArgument("answers", missing, "complete: these questions were drawn")
        coins = ByteCoins(words)
        rows = respond(collection, values, coins, self._memos(), record=record)
        coins.finish()
        return Submission(collection.digest, name, rows, number, public)

    def _draw(self, number: int) -> tuple[str, bytes]:
        """An id and coins: fresh ones, or, with a folder, those of the round."""
        size = coin_words(self.collection) * WORD_BYTES
        if self._memo is None:
            words = os.urandom(size)
            return fresh_id(), words
        file = self._coins(number)
        try:
            words = file.read_file()
        except FileNotFoundError:
            words = bytes.fromhex(fresh_id()) + os.urandom(size)
            file.place_file(words)
        if len(words) != ID_BYTES + size:
            raise CorruptData(f"{file.path} is damaged ({len(words)} bytes)")
        return words[:ID_BYTES].hex(), words[ID_BYTES:]

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
        missing: str = "refuse",
    ) -> Iterator[Batch]:
        """Randomise many records, one respondent a row: batches of at most ``rows``.

        ``table`` is a Parquet file, a pandas or Polars frame, or an Arrow table with a column
        for each question and public field. A batch does not say who is in it, but its rows have
        the order of the table. Missing answers (null, NaN) are refused; with ``missing="skip"``
        those to an optional question are people who skipped it.
        """
        from deniable.collection.bulk import privatized

        require_int("round", round, 1, self.collection.rounds)
        require_int("rows", rows, 1, 1 << 31)
        return privatized(self.collection, table, round, rows, missing)

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
            asked = [*filter(collection.remembered, collection.reports)]
            missing = [one for one in asked if not FileMemo.traces(self._file(one.name))]
            if missing and self._used([one for one in asked if one not in missing]):
                path = self._file(missing[0].name)
                raise MemoLost(
                    f"{path} is missing, and the memos of this collection were used. Put its "
                    "newest copy back: no other one is begun in its place."
                )
            for report in missing or asked:
                mechanism: Any = report.mechanism
                most = collection.changes + 1
                FileMemo.enrol(self._file(report.name), mechanism, collection.digest, most=most)

    def _used(self, begun: Iterable[Report]) -> bool:
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

    def _memos(self, reports: Iterable[Report] | None = None) -> dict[str, Memo]:
        collection = self.collection
        memos: dict[str, Memo] = {}
        for report in filter(
            collection.remembered, collection.reports if reports is None else reports
        ):
            mechanism: Any = report.mechanism
            memos[report.name] = FileMemo(self._file(report.name), mechanism, collection.digest)
        return memos


class Sheet:
    """One respondent in one round, from the draw to the submission."""

    def __init__(self, client: Client, number: int, coins: bytes | None) -> None:
        self._client, self._number, self._coins = client, number, coins
        #: The questions to ask: all, or those that the device drew; none if the round was sent.
        self.questions = [] if coins is None else drawn(client.collection, coins)

    def prepare(
        self, answers: Mapping[str, Any], *, fields: Mapping[str, str] | None = None
    ) -> Submission:
        """What would be sent; only the questions of this sheet need an answer."""
        client = self._client
        values = client._values(answers, self._number, self.questions)
        return client._prepared(values, self._number, client._public(fields), self._coins)

    def answer(
        self, answers: Mapping[str, Any], *, fields: Mapping[str, str] | None = None
    ) -> bool:
        """Prepare it and send it, as `Client.answer` does."""
        return self._client.send(self.prepare(answers, fields=fields))


@contextmanager
def _carrying(prepared: Submission | Batch) -> Iterator[None]:
    """Errors carry what to send again, whatever went wrong."""
    try:
        yield
    except Exception as error:
        vars(error).setdefault("prepared", prepared)
        raise
