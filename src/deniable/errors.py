"""What a refusal of an input says: the argument, the value, and what is allowed."""

from __future__ import annotations

from numbers import Real
from operator import index
from typing import Any

_SHOWN = 80


class InvalidArgument(ValueError):
    """An argument has a value that is not allowed."""

    def __init__(self, name: str, value: Any, allowed: str) -> None:
        super().__init__(f"{name!r} must be {allowed}; got {shorten(value)}.")
        self.name = name
        self.value = value
        self.allowed = allowed

    def at(self, name: str) -> InvalidArgument:
        """The same refusal about another name: the caller's."""
        return type(self)(name, self.value, self.allowed)

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.name, self.value, self.allowed))


class Unsupported(InvalidArgument):
    """A version, a kind of answer or a mechanism that is not known here: a newer release may."""

    #: The name of this refusal in every client.
    type = "unsupported"


class BrokenPromise(InvalidArgument):
    """The integers of a channel say more than the epsilon that is declared beside them."""

    type = "broken-promise"


class ManifestRefused(ValueError):
    """A published manifest that a device does not answer.

    ``type`` is ``bad-manifest`` (not the format), ``unsupported`` (made by a newer release) or
    ``broken-promise`` (its integers say more than its words).
    """

    def __init__(self, message: str, type: str = "bad-manifest") -> None:  # noqa: A002
        super().__init__(message)
        self.type = type

    def __reduce__(self) -> tuple[Any, ...]:
        return (ManifestRefused, (str(self), self.type))


class Unshown:
    """Stands for an answer in a refusal: what somebody typed is never repeated."""

    def __init__(self, answer: Any) -> None:
        self.type: str = answer.type if isinstance(answer, Unshown) else type(answer).__name__

    def __repr__(self) -> str:
        return f"an answer of type {self.type}, which is not shown"


class MismatchError(ValueError):
    """Two things that belong to different collections or mechanisms were brought together.

    Where a round was sent already, ``prepared`` is what was sent.
    """

    prepared: Any = None


class OtherCollection(MismatchError):
    """A manifest is not the one that somebody was told to answer."""

    #: The name of this refusal in every client.
    type = "other-collection"


class AlreadyAnswered(MismatchError):
    """Another step of the same protocol was answered: nobody answers two of them."""

    type = "answered"


class CollectionChanged(MismatchError):
    """Another collection is served where one was answered before: it is another budget."""

    type = "changed"

    def __init__(self, address: str, digest: str, epsilon: float, spent: float) -> None:
        super().__init__(
            f"{address} now serves another collection than the one answered before, on which "
            f"epsilon {spent:.6g} was spent so far. This one may spend {epsilon:.6g} more. Nothing "
            f"was answered. If the respondent agrees: Client(..., another={digest!r})"
        )
        self.address, self.digest, self.epsilon, self.spent = address, digest, epsilon, spent

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.address, self.digest, self.epsilon, self.spent))


class TooFew(ValueError):
    """Too few people for what was asked: an estimate would say next to nothing."""


class TooMuch(ValueError):
    """A collection may spend more than the program was told to allow."""

    type = "too-much"


class CorruptData(ValueError):
    """Bytes or a table that are not what they claim to be: foreign, truncated or altered."""


class BudgetSpent(ValueError):
    """More was asked of a respondent than the budget allows; nothing was spent.

    Where many were charged at once, ``places`` says whose budgets are too small.
    """

    def __init__(self, message: str, places: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.places = places


class MemoLost(ValueError):
    """A memo is missing, damaged or outdated, and no new budget is started for it."""

    type = "memo"


class StoreUnavailable(OSError):
    """A disk, a folder, another process or the network keeps something from being used now.

    ``prepared`` is the submission or batch that was perhaps not counted: sending it again is safe.
    """

    prepared: Any = None


class EngineUnavailable(OSError):
    """A program that an engine needs is missing or too old, or its workers cannot run our code."""


class Refused(ValueError):
    """A collector refused a submission. ``problem`` says what kind it was.

    What was sent may have been read all the same: ``prepared`` is the only thing to send again.
    """

    prepared: Any = None

    def __init__(self, message: str, status: int = 0, problem: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.problem = problem


class MissingExtra(ImportError):
    """A feature was used whose optional dependency is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        name = package.partition(".")[0]
        words = f"{name!r} is not installed. Install it with: pip install 'deniable[{extra}]'"
        super().__init__(words, name=name)


def shorten(value: Any) -> str:
    """``repr(value)``, cut so that a message never carries a whole data set."""
    try:
        text = repr(value)
    except ValueError:  # Python does not write integers of more than 4,300 digits
        text = f"a very long {type(value).__name__}"
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def require_int(name: str, value: Any, low: int, high: int) -> int:
    """``value`` as a Python int if it is an integer of ``low..high``, else a refusal."""
    try:
        integer = None if isinstance(value, bool) else index(value)
    except TypeError:  # also arrays of several integers
        integer = None
    if integer is None or not low <= integer <= high:
        raise InvalidArgument(name, value, f"an integer of {low}..{high}")
    return integer


def is_number(value: Any) -> bool:
    """Whether ``value`` is a real number, of whatever type; True and False are none."""
    return isinstance(value, Real) and not isinstance(value, bool)


def require_share(name: str, value: Any) -> float:
    """``value`` as a float if it is a number strictly between 0 and 1, else a refusal."""
    if not is_number(value) or not 0 < value < 1:
        raise InvalidArgument(name, value, "a number strictly between 0 and 1")
    return float(value)


def require_type(name: str, value: Any, kind: type) -> None:
    """Refuse a ``value`` that is not of this kind."""
    if not isinstance(value, kind):
        raise InvalidArgument(name, value, f"of type {kind.__name__}")
