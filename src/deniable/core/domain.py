"""A kind of answer: how people write it, and the integers that stand for it on a device.

Each kind is one file in `deniable.answers` and is registered here, by its name, once. Everything
else asks the domain: survey files for its keys, manifests for its spec, devices for its encoding.
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InvalidArgument, Unsupported, shorten

if TYPE_CHECKING:
    from deniable.texts import Fold

Label: TypeAlias = str | int | bool
DomainLike: TypeAlias = "Domain | int | Iterable[Label]"

#: Values are 32-bit indices, and local hashing needs them distinct modulo 2**31 - 1.
MAX_SIZE = (1 << 31) - 2
#: JSON readers keep integers exact up to here.
MAX_INTEGER_LABEL = 1 << 53
#: The label of an optional question that was not answered.
SKIPPED = "(no answer)"
#: The key of questions, of every kind, that says whether they may be skipped.
OPTIONAL = "optional"


@dataclass(frozen=True)
class Key:
    """A key of a kind of answer in ``[[questions]]`` of a survey file.

    ``read`` checks what the file says and returns it as the domain wants it. ``prompt`` is what
    ``deniable init`` asks; a key without one is asked for only if it is needed. ``parse`` reads a
    typed line, None if that leaves the key out; ``lines`` asks for a list, one entry per line,
    whose entries differ when tidied.
    """

    read: Callable[[Any], Any]
    needed: bool = False
    default: Any = None
    #: Whether it belongs to the texts that people read, and not to the channel.
    wording: bool = False
    #: Whether it only says what is wanted of the answers, so that a mechanism can be chosen.
    policy: bool = False
    prompt: str = ""
    #: One line that explains the prompt.
    about: str = ""
    parse: Callable[[str], Any] = str
    lines: bool = False
    fold: Fold = "none"


@dataclass(frozen=True)
class Purpose:
    """What people want to know of answers: the keys of a question that say so, and in words."""

    keys: Mapping[str, Any]
    about: str = ""


@dataclass
class Kind:
    """A name of `KINDS`, and the forms of domain that have it, told apart by their keys."""

    name: str
    forms: list[type[Domain]] = field(default_factory=list)

    @property
    def surveyed(self) -> list[type[Domain]]:
        """The forms that a survey file can have."""
        return [form for form in self.forms if form.in_surveys]

    @property
    def keys(self) -> dict[str, Key]:
        """All keys that its questions may have in a survey file."""
        return {name: key for form in self.surveyed for name, key in form.keys.items()}

    def from_spec(self, spec: Mapping[str, Any]) -> Domain:
        """The domain of a spec whose keys are those of one of the forms."""
        given = set(spec) - {"kind", "optional"}
        for form in self.forms:
            if any(given == set(keys) for keys in form.spec_keys):
                return form._from_spec(spec)
        ways = (", ".join(keys) for form in self.forms for keys in form.spec_keys)
        allowed = f"an object with kind, optional and the keys of {self.name!r}: "
        raise InvalidArgument("domain", spec, allowed + "; or ".join(way or "none" for way in ways))

    def from_table(self, table: Mapping[str, Any]) -> Domain:
        """The domain of a question in a survey file; other keys than the kind's are not read."""
        form = self.form_of(table)
        keys = form.keys.items()
        found = {name: key.read(table[name]) for name, key in keys if name in table}
        whole = {name: key.default for name, key in keys} | found
        kept = {name: whole[name] for name, key in keys if not (key.wording or key.policy)}
        return form(**kept, **{OPTIONAL: read_optional(table.get(OPTIONAL, False))})

    def wanted(self, table: Mapping[str, Any]) -> tuple[str, ...]:
        """The tasks that a question in a survey file asks for; see `Domain.wanted`."""
        return self.form_of(table).wanted(table)

    def says_what_is_wanted(self, table: Mapping[str, Any]) -> bool:
        """Whether a question in a survey file does so itself, or leaves it to the defaults."""
        return any(name in table for name, key in self.form_of(table).keys.items() if key.policy)

    def form_of(self, table: Mapping[str, Any]) -> type[Domain]:
        """The form that a question in a survey file has."""
        for form in self.surveyed:
            if set(form.needed()) <= set(table) and not self._others(form) & set(table):
                return form
        ways = ", or ".join(" and ".join(form.needed()) for form in self.surveyed)
        either = "either " if len(self.surveyed) > 1 else ""
        raise InvalidArgument(
            "keys", sorted(table), f"complete: {self.name!r} needs {either}{ways}"
        )

    def _others(self, form: type[Domain]) -> set[str]:
        return set(self.keys) - set(form.keys)


#: Every kind of answer, by the name that survey files and manifests use.
KINDS: dict[str, Kind] = {}


def kinds() -> dict[str, Kind]:
    """`KINDS`, once the built-in kinds have registered themselves."""
    importlib.import_module("deniable.answers")
    return KINDS


def survey_kinds() -> dict[str, Kind]:
    """The kinds that a question of a survey file can have."""
    return {name: kind for name, kind in kinds().items() if kind.surveyed}


def find_kind(name: Any) -> Kind:
    """The kind with this name."""
    known = kinds()
    if not isinstance(name, str) or name not in known:
        raise Unsupported("kind", name, f"one of {', '.join(known)}")
    return known[name]


@contextmanager
def registering(*forms: type[Domain]) -> Iterator[None]:
    """Know some kinds for as long as the block runs: for tests.

    Define their classes with ``registered=False``: ``class Dice(Domain, registered=False)``.
    """
    kinds()
    for form in forms:
        _register(form)
    try:
        yield
    finally:
        for form in forms:
            KINDS[form.kind].forms.remove(form)
            if not KINDS[form.kind].forms:
                del KINDS[form.kind]


def _register(form: type[Domain]) -> None:
    KINDS.setdefault(form.kind, Kind(form.kind)).forms.append(form)


class Domain:
    """What a question allows as an answer. A domain never changes; equal ones compare equal.

    ``Domain(["car", "train"])`` and ``Domain(5)`` are lists of answers (`deniable.Choice`).
    A kind says below what is its own; it has a ``kind`` and is registered when it is defined.
    """

    #: The word for it in survey files, manifests and JavaScript.
    kind: ClassVar[str]
    #: What it is called where something else was given: "a list of answers".
    noun: ClassVar[str]
    #: Its keys in ``[[questions]]`` of a survey file, and the keys that its spec may have.
    keys: ClassVar[Mapping[str, Key]] = {}
    spec_keys: ClassVar[tuple[tuple[str, ...], ...]] = ((),)
    #: Whether a survey file can ask for it.
    in_surveys: ClassVar[bool] = True
    #: What people want who ask for this form of a kind and not for another, in one word each.
    purposes: ClassVar[Mapping[str, Purpose]] = {"": Purpose({})}
    #: Whether people may answer what nobody listed.
    is_open: ClassVar[bool] = False
    #: Whether its values are the indices of a list: then it has ``size`` and `labels`.
    is_listed: ClassVar[bool] = False

    #: What an encoded answer is held in.
    dtype: np.dtype[Any]
    #: Whether a respondent may skip the question: the answer None, encoded as `skip`.
    optional: bool = False
    #: The words for each value, and what is hashed for it, if they are listed and have any.
    labels: tuple[Label, ...] | None = None
    texts: tuple[Label | bytes, ...] | None = None

    def __init_subclass__(cls, *, registered: bool = True) -> None:
        super().__init_subclass__()
        if registered and "kind" in vars(cls):
            _register(cls)

    def __new__(cls, *given: Any, **named: Any) -> Self:
        """``Domain(...)`` itself is a list of answers."""
        if cls is not Domain:
            return super().__new__(cls)
        return object.__new__(kinds()["choice"].forms[0])  # type: ignore[return-value]

    def __init__(self, answers: int | Iterable[Label], other: Label | None = None) -> None:
        raise NotImplementedError

    @classmethod
    def of(cls, answers: Any) -> Self:
        """``answers`` itself if it is a domain, else the domain built from it."""
        return answers if isinstance(answers, cls) else cls(answers)

    # ---- what a kind says

    def encode(self, answers: Any) -> NDArray[Any]:
        """The integers of a column of answers, in `dtype` or a smaller type.

        Accepts lists, NumPy arrays, pandas and Polars series, and Arrow arrays; refuses the first
        answer that is none by its place, ``values[3]``. This is the only encoding there is.
        Run by the device.
        """
        raise NotImplementedError

    def to_spec(self) -> dict[str, Any]:
        """The domain as JSON data: kind, optional, and the keys of the kind.

        Run by the collector.
        """
        raise NotImplementedError

    @classmethod
    def _from_spec(cls, spec: Mapping[str, Any]) -> Domain:
        """The domain of a spec that has one of `spec_keys`; the values are not checked yet."""
        named = {name: value for name, value in spec.items() if name != "kind"}
        return cls(**named)

    @classmethod
    def wanted(cls, table: Mapping[str, Any]) -> tuple[str, ...]:
        """The tasks that a question of a survey file needs, by name; none: those of any mechanism.

        Mechanisms are chosen by the first of them. Run by the collector.
        """
        return ()

    def words(self) -> str:
        """What may be answered, in a few words: "4 answers"."""
        raise NotImplementedError

    @property
    def short(self) -> str:
        """The same as statisticians write it: "k = 4"."""
        return self.words()

    def sample(self) -> Sequence[Any]:
        """Encoded values to enumerate: all of a small domain, or the extremes and some between."""
        raise NotImplementedError

    def values(self, most: int) -> Sequence[Any]:
        """What stands for all values where a channel is enumerated; nothing if they are more.

        The `sample`, unless it leaves out values that a channel may treat in another way.
        """
        sample = self.sample()
        return sample if len(sample) <= most else ()

    def answer(self, value: Any) -> Any:
        """An answer with this encoded value."""
        return self.label(value)

    @classmethod
    def smalls(cls) -> Iterator[Domain]:
        """Domains of this form whose channels can be enumerated. Run by the laws."""
        return iter(())

    @classmethod
    def larges(cls) -> Iterator[Domain]:
        """Domains of this form as large as in real collections. Run by the laws."""
        return cls.smalls()

    @classmethod
    def look_alikes(cls) -> Iterator[Domain]:
        """Domains of this form that differ in hardly anything, and yet are different.

        Run by the laws.
        """
        return cls.smalls()

    def require_publishable(self) -> None:
        """Refuse a domain that the library may use but a manifest must not carry.

        Run by the device and the collector.
        """

    # ---- what follows

    @property
    def skip(self) -> int | None:
        """The encoded value of a question that was skipped, if it is optional."""
        return None

    @property
    def is_ordered(self) -> bool:
        """Whether listed answers have an order, that of their indices."""
        return False

    @property
    def size(self) -> int:
        """The number of values, if they are listed."""
        raise InvalidArgument("domain", self, "a list of answers; give the candidates")

    @property
    def listed(self) -> Sequence[Label]:
        """All answers, in the order of their indices."""
        return range(self.size) if self.labels is None else self.labels

    def guesses(self, above: float | None = None) -> Sequence[Label]:
        """What somebody may guess that an answer is: exactly one of these holds.

        All answers, where they are listed; of a number, whether it is ``above`` another one.
        Run by whoever audits.
        """
        if above is not None:
            raise InvalidArgument("above", above, f"left out: the answers are {self.words()}")
        return self.listed

    def label(self, index: int) -> Label:
        """The answer with this index. Run by the analyst."""
        return self.listed[index]

    @property
    def answered(self) -> tuple[Label, ...]:
        """All answers but the skip, in the order of their indices."""
        return tuple(label for index, label in enumerate(self.listed) if index != self.skip)

    @property
    def ids(self) -> tuple[str, ...]:
        """The stable names of answers that texts may word otherwise."""
        return ()

    def about(self, candidates: Iterable[str]) -> Domain:
        """The list of answers to look for among those that nobody listed. Run by the analyst."""
        raise InvalidArgument("candidates", candidates, "left out: the answers are listed")

    @classmethod
    def needed(cls) -> list[str]:
        """The keys that a survey file must have."""
        return [name for name, key in cls.keys.items() if key.needed]

    @classmethod
    def from_spec(cls, spec: Any) -> Domain:
        """The domain that `to_spec` described. Run by the device, the collector and the analyst."""
        if not isinstance(spec, Mapping) or not {"kind", "optional"} <= set(spec):
            raise InvalidArgument("domain", spec, "an object with 'kind' and 'optional'")
        if type(spec["optional"]) is not bool:
            raise InvalidArgument("optional", spec["optional"], "true or false")
        return find_kind(spec["kind"]).from_spec(spec)

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> Domain:
        """The domain of a question in a survey file. Run by the collector."""
        return find_kind(table.get("kind")).from_table(table)

    def _freeze(self, **fields: Any) -> None:
        vars(self).update(fields)

    @property
    def _identity(self) -> tuple[Any, ...]:
        """What makes two domains of one type equal."""
        return tuple(sorted(vars(self).items()))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("a Domain cannot be changed")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a Domain cannot be changed")

    def __reduce__(self) -> tuple[Any, ...]:
        return (Domain.from_spec, (self.to_spec(),))

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Domain):
            return NotImplemented
        return type(self) is type(other) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash((type(self), self._identity))

    def __repr__(self) -> str:
        return self.words()


def read_optional(optional: Any) -> bool:
    """Whether a question may be skipped, if a survey file says so."""
    if not isinstance(optional, bool):
        raise InvalidArgument(OPTIONAL, optional, "true or false")
    return optional


# ---- columns of answers


def refuse_what_is_no_column(values: Any, name: str = "values") -> None:
    """A table, a mapping or a set would lose answers or invent them."""
    column = hasattr(values, "__iter__") and len(getattr(values, "shape", (0,))) == 1
    # As plain objects, NumPy's times would be numbers.
    column = column and getattr(getattr(values, "dtype", None), "kind", None) not in ("m", "M")
    if not column or isinstance(values, (str, bytes, Mapping, Set, np.ma.MaskedArray)):
        raise InvalidArgument(name, values, "a list or array of answers, none missing")


def to_list(values: Any) -> Sequence[Any]:
    """Plain Python objects: a NumPy string or an Arrow scalar would not be found among labels."""
    for method in ("to_pylist", "tolist", "to_list"):
        if hasattr(values, method):
            return list(getattr(values, method)())
    return list(values)


def is_text(value: Any) -> TypeGuard[str]:
    """Whether it is text that UTF-8 can carry."""
    return isinstance(value, str) and value == value.encode(errors="ignore").decode()


def in_order(name: str, given: Any, labels: Sequence[Label] | None) -> Any:
    """``given`` in the order of ``labels``: aligned where it has labels of its own, else as it is.

    A mapping and a pandas Series have labels; lists, arrays and Polars and Arrow columns have none.
    Without ``labels`` nothing can be aligned: only 0, 1, 2, ... are taken, which say nothing.
    """
    own = own_labels(given)
    if own is None:
        return given
    if labels is None and own != list(range(len(own))):
        raise InvalidArgument(name, own, "without labels here: a list in the right order")
    wanted = own if labels is None else labels
    if faults := _faults(own, wanted):
        raise InvalidArgument(name, given, f"labelled with each answer once, or a list; {faults}")
    places = dict(zip(own, given.values() if isinstance(given, Mapping) else given, strict=True))
    return [places[label] for label in wanted]


def _faults(own: Sequence[Any], wanted: Sequence[Any]) -> str:
    """How labels differ from those that are wanted, in words."""
    times, allowed = Counter(own), set(wanted)
    found = {
        "missing": [label for label in wanted if label not in times],
        "unknown": [label for label in times if label not in allowed],
        "repeated": [label for label in times if times[label] > 1],
    }
    return ", ".join(f"{word}: {shorten(which)}" for word, which in found.items() if which)


def own_labels(given: Any) -> list[Any] | None:
    """The labels of a mapping or a Series; the ``index`` of a list is a method."""
    if isinstance(given, Mapping):
        return list(given)
    index = getattr(given, "index", None)
    one_column = index is not None and not callable(index) and getattr(given, "ndim", 0) == 1
    return list(to_list(index)) if one_column else None
