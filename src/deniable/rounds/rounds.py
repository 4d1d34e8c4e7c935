"""A tally for every round of a repeated collection."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeAlias

from deniable.core.domain import MAX_INTEGER_LABEL
from deniable.core.reports import Reports, require_same
from deniable.core.tally import Tally, seal, unseal
from deniable.errors import CorruptData, InvalidArgument, MismatchError, require_type
from deniable.mechanisms import Mechanism, from_spec

if TYPE_CHECKING:
    from deniable.estimation import Frequencies
    from deniable.rounds.changes import Changes
    from deniable.rounds.series import Series

Round: TypeAlias = str | int
MAGIC = b"DNROUND"
LONGEST_LABEL = 200


class Rounds:
    """Tallies of one mechanism by the label of their round: a commutative monoid under `merge`.

    A label is a text or an integer. Rounds are in the order of their labels, so that it never
    matters who merged what first: integers, then texts, in which runs of digits count as numbers
    ("week 9" is before "week 10"; dates like 2026-05-01 are in order).
    """

    def __init__(self, mechanism: Mechanism) -> None:
        require_type("mechanism", mechanism, Mechanism)
        self.mechanism = mechanism
        self._tallies: dict[Round, Tally] = {}

    @property
    def labels(self) -> tuple[Round, ...]:
        """The labels of the rounds, in order."""
        return tuple(sorted(self._tallies, key=_place))

    @property
    def n(self) -> int:
        """The number of reports in all rounds."""
        return sum(tally.n for tally in self._tallies.values())

    def add(self, label: Round, reports: Reports | Tally) -> Rounds:
        """Count more reports (or a tally of them) in a round; on an error nothing is changed."""
        before = self._tallies.get(check_label(label), Tally(self.mechanism))
        more = reports if isinstance(reports, Tally) else self.mechanism.tally().add(reports)
        self._tallies[label] = before.merge(more)
        return self

    def merge(self, other: Rounds) -> Rounds:
        """A new collection with the reports of both."""
        require_type("other", other, Rounds)
        require_same(self.mechanism, other.mechanism)
        parts = [item for rounds in (self, other) for item in rounds._tallies.items()]
        return reduce(lambda result, item: result.add(*item), parts, Rounds(self.mechanism))

    def tallies(self) -> dict[Round, Tally]:
        """The tally of each round, in order."""
        return {label: self._tallies[label] for label in self.labels}

    def __getitem__(self, label: Round) -> Tally:
        if check_label(label) not in self._tallies:
            raise InvalidArgument("label", label, f"one of {self.labels}")
        return self._tallies[label]

    def __len__(self) -> int:
        return len(self._tallies)

    def __iter__(self) -> Iterator[Round]:
        return iter(self.labels)

    def estimate(self, method: str | None = None, **choices: Any) -> Series:
        """The estimate of each round by itself; choices as in `deniable.combine`."""
        from deniable.rounds.series import Series

        return Series.of(self.tallies(), method, **choices)

    def pooled(
        self,
        method: str | None = None,
        *,
        respondents: str = "same",
        candidates: Iterable[str] | None = None,
        **choices: Any,
    ) -> Frequencies:
        """One estimate over all rounds, for a truth that is stable; choices as in `combine`.

        ``respondents`` is "same" (the safe choice: the intervals hold for a panel, and are too wide
        for fresh people) or "fresh" (all reports are independent). Of the same respondents the
        errors are "score", whatever the method. For the ``population`` "everyone" a panel is one
        sample, as large as its largest round.
        """
        from deniable.estimation.frequencies.estimator import Choices
        from deniable.rounds.pooling import pooled

        return pooled(self, respondents, Choices.of(method, choices), candidates)

    def changes(
        self,
        false_alarm: float = 0.05,
        *,
        respondents: str = "fresh",
        baseline: Round | None = None,
        candidates: Iterable[str] | None = None,
    ) -> Changes:
        """Compare each round with the one before it, or with the ``baseline``, for every value.

        ``respondents`` is "fresh" (samples of everyone, the safe choice: the false-alarm rate holds
        for a panel, too) or "same" (a panel that answers in every round: sees much smaller changes;
        if anybody moves it may flag any value).
        """
        from deniable.rounds.changes import compare

        return compare(self, false_alarm, respondents, baseline, candidates)

    def to_bytes(self) -> bytes:
        """The bytes of each tally, in order, sealed like a tally."""
        tallies = {label: tally.to_bytes() for label, tally in self.tallies().items()}
        sizes = [[label, len(data)] for label, data in tallies.items()]
        header = {"spec": self.mechanism.to_spec(), "rounds": sizes}
        return seal(MAGIC, header, b"".join(tallies.values()))

    @classmethod
    def from_bytes(cls, data: bytes, mechanism: Mechanism | None = None) -> Rounds:
        """The rounds that `to_bytes` wrote; of ``mechanism``, if the caller expects one."""
        header, content = unseal(MAGIC, data, "collection of rounds")
        sizes = _checked_sizes(header, len(content))
        rounds = cls(from_spec(header["spec"]))
        if mechanism is not None:
            require_same(mechanism, rounds.mechanism)
        end = 0
        for label, size in sizes.items():
            start, end = end, end + size
            try:
                rounds.add(label, Tally.from_bytes(content[start:end]))
            except MismatchError as error:
                raise CorruptData(f"round {label!r} is not one of these: {error}") from error
        return rounds

    def __eq__(self, other: object) -> bool:
        return self.to_bytes() == other.to_bytes() if isinstance(other, Rounds) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        many, reports = counted(len(self), "round"), counted(self.n, "report")
        return f"<{many} with {reports} of {self.mechanism!r}>"


def counted(n: int, noun: str) -> str:
    """How many there are, in words."""
    return f"{n} {noun}{'s' * (n != 1)}"


def require_reports(rounds: Mapping[Round, Tally | Reports]) -> None:
    """Refuse what says nothing: no rounds at all, or a round without a report."""
    if not rounds:
        raise InvalidArgument("rounds", list(rounds), "at least one round")
    for label, part in rounds.items():
        if not (part.n if isinstance(part, Tally) else len(part)):
            raise InvalidArgument("rounds", label, "rounds with at least one report")


def check_label(label: Any) -> Round:
    """``label``, if it can name a round."""
    whole = type(label) is int and abs(label) < MAX_INTEGER_LABEL
    text = type(label) is str and 0 < len(label) <= LONGEST_LABEL and label.isprintable()
    if not whole and not text:
        allowed = f"a printable text of 1..{LONGEST_LABEL} characters or an integer below 2**53"
        raise InvalidArgument("label", label, allowed)
    named: Round = label
    return named


def _place(label: Round) -> tuple[Any, ...]:
    """A key that sorts integers first, then texts with their runs of digits as numbers."""
    if isinstance(label, int):
        return (0, label)
    words = re.split("([0-9]+)", label)
    return (1, [int(word) if i % 2 else word for i, word in enumerate(words)], label)


def _checked_sizes(header: Any, content: int) -> dict[Round, int]:
    """The bytes of each round, if the header is one that `to_bytes` writes."""
    if not isinstance(header, dict) or set(header) != {"spec", "rounds"}:
        raise CorruptData("the header of the rounds must have the keys spec and rounds")
    try:
        sizes = {check_label(label): size for label, size in header["rounds"]}
        whole = all(type(size) is int and size > 0 for size in sizes.values())
        sound = (
            whole and list(sizes) == sorted(sizes, key=_place) and sum(sizes.values()) == content
        )
    except (TypeError, ValueError):
        sound = False
    if not sound or len(sizes) != len(header["rounds"]):
        raise CorruptData("the header of the rounds does not describe what follows it")
    return sizes
