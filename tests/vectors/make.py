"""Write the test vectors of kinds of answers, of mechanisms and of tallies, version 2.

    python tests/vectors/make.py tests/vectors/v2

New members of a family and new families are appended: the coins of a case depend on its place.
What is there already changes only when a new version begins.
"""

import hashlib
import json
import sys
from itertools import product
from pathlib import Path

import numpy as np

import deniable as dn
from deniable.answers.number import GRID
from deniable.answers.text import text_code
from deniable.core.drawn import Drawn
from deniable.core.integers import declared
from deniable.core.layout import Bits, Bytes, Drawing, Index, Record
from deniable.core.registry import mechanisms
from deniable.randomness import SCALE, WORD_BYTES, ByteCoins
from deniable.texts import tidy

#: Declared ratios are missed by so much; readers that compare doubles allow for 1e-9.
MISSED = 2e-6
SIX = dn.Choice(["never", "rarely", "sometimes", "often", "daily", "always"], ordered=True)
TOOLS = dn.Items(["phone", "laptop", "tablet", "desktop", "paper"], 3)
FRUITS = [f"fruit {number}" for number in range(60)]

MECHANISMS = [
    dn.BRR(["no", "yes"], 1.0),
    dn.GRR(10, 0.5),
    dn.GRR(["car", "train", "other"], 2.0),
    dn.SUE(13, 1.0),
    dn.OUE(100, 1.0),
    dn.UE(9, p=0.75, q=0.5),
    dn.SS(20, 1.0),
    dn.BLH(50, 1.0),
    dn.OLH(50, 2.0),
    dn.HR(21, 1.0),
    dn.HR(21, 3.0, block=8, seed=-1),
    dn.HRR(21, 1.0),
    dn.HRR(["no", "yes"], 3.0),
    dn.SHist(21, 2.0, b=64, seed=5),
    dn.SHist(21, 0.5),
    dn.THE(13, 1.0),
    dn.SHE(11, 1.0),
    dn.SHE(7, 2.0, steps=3, reach=2),
    dn.SHE(5, 4.0, steps=2, reach=0),
    dn.BasicRAPPOR(13, 1.0),
    dn.BasicRAPPOR(9, f=0.5, p=0.75, q=0.5),
    dn.CMS(50, 1.0, cohorts=100, width=20, seed=1),
    dn.CMS(["car", "train", "other"], 2.0, cohorts=16, width=128),
    dn.HCMS(50, 1.0, cohorts=64, width=32),
    dn.HCMS(dn.Text(), 3.0, cohorts=1024, width=100, seed=9),
    dn.ORR(50, 2.0, cohorts=64, width=8),
    dn.ORR(["car", "train", "other"], 2.0, cohorts=16, width=2, permuted=0),
    dn.ORR(dn.Text(), 2.0, cohorts=1000, width=8, seed=2**32 - 1),
    dn.ORAPPOR(50, 2.0, cohorts=64, width=40, permuted=1),
    dn.ORAPPOR(dn.Text(), 2.0, cohorts=64, width=40, hashes=3),
    dn.RAPPOR(dn.Text(), 2.0, cohorts=64, width=16, hashes=2),
    dn.RAPPOR(dn.Text(), f=0.5, p=0.75, q=0.5, cohorts=64, width=16, hashes=2),
    dn.LGRR(10, 2.0, 1.0),
    dn.LGRR(10, 2.0, 1.0, calibration="paper"),
    dn.LSUE(13, 2.0, 1.0),
    dn.LOUE(13, 2.0, 1.0),
    dn.LSOUE(13, 2.0, 1.0),
    dn.LOSUE(["car", "train", "other"], 4.0, 1.5),
    dn.LBLH(50, 1.0),
    dn.LOLH(50, 4.0, 2.0),
    dn.DBitFlip(20, 1.0),
    dn.DBitFlip(20, 1.0, w=1),
    dn.DBitFlipPM(13, 2.0, w=13),
    dn.DRR(dn.Number(0, 24, 0.25), 1.0),
    dn.DRR(dn.Number(-1, 1, optional=True), 4.0),
    dn.DRR(dn.Number(0, 100, optional=True), 2.0, ell=5, fine=9, shown=9),
    dn.DRR(dn.Number(0, 10, 1), 6.0, fine=1, shown=0),
    dn.GRR(dn.YesNo(optional=True), 1.0),
    dn.OUE(dn.Bins([5, 6.5, 8], optional=True), 1.0),
    dn.ORR(dn.Choice(["a", "b", "c"], optional=True), 1.0, cohorts=32, width=4, permuted=0),
    dn.CMS(dn.Bins([5, 6.5, 8]), 1.0, cohorts=32, width=16),
    dn.ORR(dn.Text("none", 64, optional=True), 1.0, cohorts=1024, width=3),
    dn.Joint.of_questions({"a": dn.GRR(["no", "yes", "perhaps"], 1.0), "b": dn.OUE(20, 1.0)}),
    dn.Joint.of_questions(
        {
            "smoking": dn.GRR(SIX, 1.0),
            "sleep": dn.DRR(dn.Number(0, 24, 0.25, optional=True), 1.0),
            "drug": dn.ORR(dn.Text(), 1.0, cohorts=1024, width=3),
            "remote": dn.BRR(dn.YesNo(), 0.5),
        },
        {"smoking": 1, "sleep": 40_000, "drug": 20_000, "remote": 5535},
    ),
    dn.Joint.of_questions({f"q{i}": dn.BRR(dn.YesNo(), 1.0) for i in range(257)}),
    dn.HH(dn.Number(0, 24, 0.5), 1.0),
    dn.HH(dn.Number(-40, 60), 2.0, bins=100, fan_out=4),
    dn.HH(dn.Number(0, 10, 1), 1.0, bins=4),
    dn.HH(dn.Number(0, 1), 4.0, bins=2),
    dn.HH(dn.Number(0, 250_000), 0.5, bins=1024),
    dn.HH(dn.Number(0, 1000, 0.001), 1.0, bins=37, fan_out=3),
    dn.Joint.of_questions(
        {
            "ever": dn.BRR(dn.YesNo(), 1.0),
            "income": dn.HH(dn.Number(0, 20_000), 1.0, bins=64),
        }
    ),
    dn.SetSelect(TOOLS, 1.0),
    dn.SetSelect(TOOLS, 2.0, w=2, tau=2),
    dn.SetSelect(TOOLS, 0.5, w=7),
    dn.SetSelect(dn.Items(FRUITS), 1.0, w=3),
    dn.SetSelect(dn.Items(FRUITS, 5, optional=True), 1.0, w=4),
    dn.SetSelect(dn.Items(FRUITS, 3, optional=True), 1.0, w=1),
    dn.JointBits(TOOLS, 1.0),
    dn.JointBits(dn.Items(FRUITS), 4.0),
    dn.JointBits(dn.Items(FRUITS, 3, optional=True), 4.0, w=9),
    dn.HH(dn.Number(0, 10, 1, optional=True), 1.0, bins=4),
    dn.HH(dn.Number(-1, 1, optional=True), 2.0, bins=30, fan_out=5),
]
TEXTS = ("", "https://example.org/", "Z\u00fcrich \U0001f600")


def coins(label, words):
    return hashlib.shake_256(label.encode()).digest(words * WORD_BYTES)


# ---- mechanisms


def values(domain):
    """Some encoded answers, each with the label of its coins."""
    if isinstance(domain, dn.Text):
        skip = [] if domain.skip is None else [("skip", domain.skip)]
        return [(text, text_code(text)) for text in TEXTS] + skip
    if isinstance(domain, dn.Number):
        skip = [] if domain.skip is None else [domain.skip]
        return [(v, v) for v in (0, 1, GRID // 3, GRID // 2 + 1, GRID - 1, GRID, *skip)]
    if isinstance(domain, dn.Items):
        k, m = len(domain.names), domain.at_most
        few = [[], [0], [k - 1], [*range(m)], [*range(k - m, k)]]
        skip = [] if domain.skip is None else [domain.skip]
        return [*enumerate([*map(domain.padded, few), *skip])]
    if isinstance(domain, dn.Several):
        columns = [[value for _, value in values(part)] for part in domain.parts.values()]
        few = 8 if len(columns) < 8 else 1
        return [(i, tuple(column[i % len(column)] for column in columns)) for i in range(few)]
    return [(v, v) for v in (0, domain.size // 2, domain.size - 1)]


def plain(domain, value):
    """An encoded answer as JSON: that of a text is larger than doubles can hold."""
    if isinstance(domain, dn.Several):
        parts = zip(domain.parts.values(), value, strict=True)
        return [plain(part, one) for part, one in parts]
    return str(value) if isinstance(domain, dn.Text) else value


def good_reports(number, m):
    for label, value in values(m.domain):
        data = coins(f"{number}/{label}", m.coin_words)
        drawn = ByteCoins(data)
        row = m.layout.row(m.report(value, drawn))
        drawn.finish()
        stated = {"spec": m.to_spec(), "value": plain(m.domain, value)}
        yield {**stated, "coins": data.hex(), "row": row.hex()}


def changed(m, **keys):
    """The spec with other keys in the mechanism."""
    spec = m.to_spec()
    return {**spec, "mechanism": {**spec["mechanism"], **keys}}


def bad_specs(m):
    """(why, type, spec) of specs that every reader refuses."""
    leaf = m.to_leaf()
    other = dn.YesNo() if isinstance(m.domain, dn.Number) else dn.Number(0, 1)
    spec = {**m.to_spec(), "domain": other.to_spec()}
    yield f"{leaf['name']} does not take this kind of answer", "broken-promise", spec
    yield "a key too many", "bad-manifest", changed(m, more=1)
    yield "an integer too many", "bad-manifest", changed(m, design={**leaf["design"], "more": 1})
    yield "an epsilon that is no number", "bad-manifest", changed(m, **{m.budgets[0]: "1"})
    promised = [m.guarantee.epsilon, m.once.epsilon]
    for name, epsilon in zip(m.budgets, promised, strict=False):
        lower = {name: epsilon - MISSED}
        yield f"the ratio is above that of {name}", "broken-promise", changed(m, **lower)
    for name, integer in declared(type(m)).items():
        part = "design" if name in m.design else "thresholds"
        for why, kind, wrong in bad_integers(m, part, integer):
            yield f"{name}: {why}", kind, changed(m, **{part: {**leaf[part], name: wrong}})
    if isinstance(m, Drawn):
        yield from bad_branches(m)
    if "thresholds" in leaf:
        yield "thresholds are missing", "bad-manifest", changed(m, thresholds={})


def bad_integers(m, part, integer):
    """(why, type, what is written) of wrong integers."""
    if part == "thresholds":
        yield "0", "bad-manifest", "0"
        yield "a zero before it", "bad-manifest", f"0{getattr(m, integer.name)}"
        yield "a number, not a text", "bad-manifest", 12345
        yield "2^64", "broken-promise", str(SCALE)
        return
    low, high = (x(m) if callable(x) else x for x in (integer.low, integer.high))
    yield "too small", "broken-promise", low - 1
    yield "too large", "broken-promise", high + 1
    yield "a text, not a number", "bad-manifest", str(low)
    own = getattr(m, integer.name)
    near = (x for x in (own + 1, own - 1, low, high) if low <= x <= high)
    unfit = [x for x in near if integer.rule and integer.rule(m, x)]
    if unfit:
        yield "in its range, but it does not suit the others", "broken-promise", unfit[0]


def bad_branches(m):
    leaf, joint = m.to_leaf(), isinstance(m, dn.Joint)
    first, *rest = leaf["branches"]

    def branches(*some):
        return changed(m, branches=list(some))

    def beginning(**keys):
        return branches({**first, **keys}, *rest)

    yield "weights that sum to 65535", "bad-manifest", beginning(weight=first["weight"] - 1)
    if rest:
        second = {**rest[0], "weight": first["weight"] + rest[0]["weight"]}
        without = branches(second, *rest[1:])
        yield "a weight of 0", "bad-manifest", branches({**first, "weight": 0}, second, *rest[1:])
        what = "a question that no branch is about" if joint else "a branch too few"
        yield what, "bad-manifest", without
    yield "no branches", "bad-manifest", branches()
    if joint:
        yield "a branch about no question", "bad-manifest", beginning(of=[])
        yield "a branch about an unknown question", "bad-manifest", beginning(of=["unknown"])
    else:
        yield "a branch about a question", "bad-manifest", beginning(of=["unknown"])
    inner = first["mechanism"]
    sharp = {**inner, "epsilon": inner["epsilon"] - MISSED}
    yield "a branch above its own epsilon", "broken-promise", beginning(mechanism=sharp)
    wrong = {**inner, "thresholds": {**inner["thresholds"], "keep": str(SCALE)}}
    yield "a branch with a wrong integer", "broken-promise", beginning(mechanism=wrong)
    kept = dn.LGRR(m.parts[0].domain, 1.0, 0.5).to_leaf()
    yield "a branch that remembers", "bad-manifest", beginning(mechanism=kept)
    kind = "bad-manifest" if joint else "broken-promise"
    yield f"a {m.name} in a {m.name}", kind, beginning(mechanism=leaf)


def impossible(layout, row):
    """(why, row) of rows of the right length that no device makes."""
    if isinstance(layout, Index):
        if layout.size < 256**layout.dtype.itemsize:
            yield f"{layout.noun} beyond the last", layout.row(layout.size)
    elif isinstance(layout, Bits):
        if layout.size < 8 * layout.width:
            yield "a bit of the padding is set", _or(row, layout.size)
        if layout.ones is not None:
            unset = next((v for v in range(layout.size) if not row[v >> 3] >> (v & 7) & 1), None)
            yield "no ones", bytes(layout.width)
            if unset is not None:
                yield "a one too many", _or(row, unset)
    elif isinstance(layout, Bytes):
        yield "a byte too large", bytes([*row[:-1], layout.last + 1])
    elif isinstance(layout, Record):
        for (name, part), (_, start, end) in zip(
            layout.fields.items(), layout._places, strict=True
        ):
            for why, wrong in impossible(part, row[start:end]):
                yield f"{name}: {why}", row[:start] + wrong + row[end:]
        if layout.rule:
            start, end = layout._places[-1][1:]
            asked = int.from_bytes(row[:start], "little")
            every = (1 << layout.fields["asked"].size) - 1
            if asked != every:
                yes = (every ^ asked).to_bytes(end - start, "little")
                yield "a yes to what was not asked", row[:start] + yes
    elif isinstance(layout, Drawing):
        place = int.from_bytes(row[: layout.head], "little")
        branch = layout.branches[place]
        end = layout.head + branch.dtype.itemsize
        yield (
            "a branch beyond the last",
            layout.place.row(len(layout.branches)) + row[layout.head :],
        )
        if end < len(row):
            yield "padding that is not zero", row[:-1] + b"\1"
        for why, wrong in impossible(branch, row[layout.head : end]):
            yield f"branch {place}: {why}", row[: layout.head] + wrong + row[end:]


def _or(row, bit):
    changed = bytearray(row)
    changed[bit >> 3] |= 1 << (bit & 7)
    return bytes(changed)


def bad_rows(m, rows):
    for row in rows:
        yield "too short", row[:-1]
        yield "too long", row + b"\0"
        yield "empty", b""
        for why, wrong in impossible(m.layout, row):
            assert len(wrong) == len(row), why
            yield why, wrong


def mechanism_file(family):
    members = [(i, m) for i, m in enumerate(MECHANISMS) if type(m) is family]
    good, bad = [], {}
    for number, m in members:
        made = list(good_reports(number, m))
        good += made
        for why, kind, spec in bad_specs(m):
            bad.setdefault(why, {"why": why, "type": kind, "spec": spec})
        for why, row in bad_rows(m, [bytes.fromhex(case["row"]) for case in made]):
            found = {"why": why, "type": "impossible-report", "spec": m.to_spec()}
            bad.setdefault(f"row: {why}", {**found, "row": row.hex()})
    about = (
        f"Reports of {family.name}: the row that a device makes of an encoded answer and of coins "
        "(64-bit little-endian words); specs and rows that are refused."
    )
    return {"about": about, "good": good, "bad": list(bad.values())}


# ---- kinds


def skips(domain):
    """The same domain where the question may be skipped."""
    return type(domain).from_spec({**domain.to_spec(), "optional": True})


def encoded(domain, answer):
    (value,) = domain.encode([answer]).tolist()
    return plain(domain, value)


def kind_file(about, good, bad_answers, bad_domains):
    """Good: (domain, answers). Bad: (why, domain, answer), and (why, spec)."""
    cases = [
        {"domain": domain.to_spec(), "answer": answer, "value": encoded(domain, answer)}
        for domain, answers in good
        for answer in answers
    ]
    answers = [
        {"why": why, "type": "bad-answer", "domain": domain.to_spec(), "answer": answer}
        for why, domain, answer in bad_answers
    ]
    domains = [
        {"why": why, "type": "bad-manifest", "domain": spec}
        for why, spec in [*bad_domains, *bad_keys(good[0][0].to_spec())]
    ]
    return {"about": about, "good": cases, "bad": answers + domains}


def bad_keys(spec):
    yield "a key too many", {**spec, "more": 1}
    for key in spec:
        if key not in ("kind", "optional"):
            yield f"without {key}", {name: part for name, part in spec.items() if name != key}
    yield "optional is no truth value", {**spec, "optional": 1}


def choice():
    spec = SIX.to_spec()
    drinks = dn.Choice(["tea", "coffee", "other"], other="other")
    good = [
        (SIX, ["never", "sometimes", "always"]),
        (drinks, ["tea", "other", "water", "Tea", ""]),
        (skips(SIX), ["never", "always", None]),
        (skips(drinks), ["water", None]),
    ]
    bad = [
        ("an answer that is not listed", SIX, "seldom"),
        ("another case", SIX, "Never"),
        ("a skip of a question that must be answered", SIX, None),
        ("a list", SIX, ["never"]),
        ("a skip, and other does not stand for it", drinks, None),
        ("the label of a skip", skips(SIX), "(no answer)"),
    ]
    ids = [
        ("one answer", ["one"]),
        ("an answer twice", ["one", "two", "one"]),
        ("a blank at the end", ["one ", "two"]),
        ("two blanks", ["one  more", "two"]),
        ("an empty answer", ["", "two"]),
        ("not in the normal form NFC", ["cafe\u0301", "two"]),
        ("a control character", ["one\u0007", "two"]),
        ("101 characters", ["x" * 101, "two"]),
        ("a number as an answer", [1, "two"]),
        ("a lone surrogate", ["\ud800", "two"]),
        ("answers are no list", "one"),
    ]
    domains = [(why, {**spec, "answers": answers}) for why, answers in ids]
    domains += [
        ("other is not among the answers", {**spec, "other": "elsewhere"}),
        ("ordered is no truth value", {**spec, "ordered": "yes"}),
        ("an answer like the skip", {**skips(SIX).to_spec(), "answers": ["a", "(no answer)"]}),
        ("a size in place of answers", dn.Choice(3).to_spec()),
    ]  # fmt: skip
    return kind_file("One of the listed answers: its place.", good, bad, domains)


def yes_no():
    plain_, optional = dn.YesNo(), dn.YesNo(optional=True)
    given = [True, False, "yes", "no"]
    bad = [
        ("a number", plain_, 1),
        ("another word", plain_, "Yes"),
        ("a skip of a question that must be answered", plain_, None),
    ]
    good = [(plain_, given), (optional, [*given, None])]
    return kind_file("Yes or no: true is 0, false is 1.", good, bad, [])


def number():
    half, unit = dn.Number(0, 24, 0.25), dn.Number(-1, 1)
    whole, odd = dn.Number(0, 10, 1, "refuse"), dn.Number(0.1, 0.7, 0.1)
    good = [
        (half, [0, 24, -1, 25, -0.0, 0.125, 0.124999, 0.375, 7.5, 12.1, 1e300, -1e300]),
        (unit, [-1, 1, -0.0, 0, 0.5, 1e-10, -1e-10, 0.9999999999]),
        (whole, [0, 10, 0.5, 1.5, 2.4999, 9.5]),
        (odd, [0.1, 0.7, 0.15, 0.25, 0.35, 0.6500000000000001]),
        (dn.Number(-1e15, 1e15), [-1e15, 0, 1, 1e15]),
        (skips(half), [0, 24, None]),
        (skips(whole), [None, 3]),
    ]
    bad = [
        ("a text", half, "7"),
        ("a truth value", half, True),
        ("a skip of a question that must be answered", half, None),
        ("below the range, which refuses it", whole, -0.001),
        ("above the range, which refuses it", whole, 10.001),
    ]
    spec = half.to_spec()
    domains = [
        ("lo and hi are the same", {**spec, "hi": 0, "step": None}),
        ("lo is above hi", {**spec, "lo": 25, "step": None}),
        ("a range that is too narrow for its numbers", {**spec, "lo": 1e15, "hi": 1e15 - 1}),
        ("lo is too large", {**spec, "lo": -2e15, "step": None}),
        ("lo is a text", {**spec, "lo": "0"}),
        ("a step of 0", {**spec, "step": 0}),
        ("a step below 0", {**spec, "step": -1}),
        ("the range is no multiple of the step", {**spec, "step": 7}),
        ("a step above the range", {**spec, "step": 48}),
        ("another outside", {**spec, "outside": "wrap"}),
        ("edges, too", {**spec, "edges": [1]}),
    ]
    about = "A number of a range: v of 0..2^32; a skip is 2^32 + 1 in these files."
    return kind_file(about, good, bad, domains)


def number_edges():
    sleep, one = dn.Bins([5, 6.5, 8]), dn.Bins([0])
    near = dn.Bins([-1, 5, 1e11 + 0.5, 1e11 + 1])  # 12 digits differ: ties are rounded to even
    given = [4.9, 5, 6.4999, 6.5, 7, 8, 100, -1e300, 1e300]
    good = [(sleep, given), (one, [-0.0, 0, -1e-300]), (skips(sleep), [5, 8, None])]
    good.append((near, [1e11, 1e11 + 0.5, 1e11 + 1]))
    bad = [
        ("a text", sleep, "7"),
        ("a truth value", sleep, True),
        ("a skip of a question that must be answered", sleep, None),
    ]
    spec = sleep.to_spec()
    edges = [
        ("no edges", []),
        ("edges that do not ascend", [5, 5]),
        ("edges that descend", [5, 4]),
        ("edges with the same 12 digits", [1, 1.0000000000001]),
        ("edges with the same 12 digits, one rounded to even", [1e11, 1e11 + 0.5]),
        ("edges with the same 12 digits, both rounded to even", [1e11 + 1.5, 1e11 + 2.5]),
        ("an edge that is a text", ["5"]),
        ("an edge that is a truth value", [True]),
        ("1001 edges", list(range(1001))),
        ("edges are no list", 5),
    ]
    domains = [(why, {**spec, "edges": wrong}) for why, wrong in edges]
    about = "A number, counted between edges: how many edges are at most the number."
    return kind_file(about, good, bad, domains)


#: (why, text, fold): spellings, and what tidying makes of them.
SPELLINGS = [
    ("as it is", "ibuprofen", "case"),
    ("a blank behind", "ibuprofen ", "case"),
    ("a capital, a blank before", " Ibuprofen", "case"),
    ("capitals", "IBUPROFEN", "case"),
    ("a no-break space", "\xa0ibuprofen\xa0", "case"),
    ("ideographic spaces", "\u3000Ibuprofen\u3000", "case"),
    ("a line end", "ibuprofen\r\n", "case"),
    ("a byte order mark", "\ufeffibuprofen", "case"),
    ("runs of blanks between words", "two\t \u2003\u2009words", "case"),
    ("next line is a blank", "two\x85words\x85", "case"),
    (
        "all listed blanks",
        "a\t\n\x0b\x0c\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006"
        "\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeffb",
        "case",
    ),
    ("U+001C to U+001F are no blanks", "\x1cx\x1d\x1e\x1f", "case"),
    ("U+180E, U+200B and U+2060 are no blanks", "\u180ex\u200by\u2060", "case"),
    ("NUL stays", "a\x00b", "case"),
    ("composed", "caf\xe9", "case"),
    ("decomposed", "cafe\u0301", "case"),
    ("decomposed capitals", "CAFE\u0301", "case"),
    ("sharp s", "Stra\xdfe", "case"),
    ("sharp s in capitals", "STRASSE", "case"),
    ("capital sharp s stays a sharp s", "STRA\u1e9eE", "case"),
    ("Turkish dotted capital i", "\u0130zmir", "case"),
    ("Turkish dotless i", "\u0131s\u0131", "case"),
    ("no locale: I becomes i", "ISPARTA", "case"),
    ("final sigma", "\u039f\u0394\u039f\u03a3", "case"),
    ("sigma inside, then final", "\u03c3\u03c4\u03cc\u03c7\u03bf\u03c3", "case"),
    ("sigma alone", "\u03a3", "case"),
    ("final sigma before a blank", "\u03bf\u03b4\u03bf\u03a3 \u03b1", "case"),
    ("ligatures", "\ufb01n, o\ufb03ce", "case"),
    ("titlecase digraph", "\u01c5ungla", "case"),
    ("long s", "\u017ftra\xdfe", "case"),
    ("micro sign becomes mu", "5 \xb5g", "case"),
    ("Kelvin and Angstrom signs", "\u212a \u212b", "case"),
    ("Greek with iota below", "\u1fb3", "case"),
    ("combining marks in another order", "q\u0307\u0323", "case"),
    ("a mark that composes after folding", "J\u030c", "case"),
    ("excluded from composition", "\u0958", "case"),
    ("Hangul jamo", "\u1112\u1161\u11ab", "case"),
    ("Georgian capitals", "\u1c90\u1c91", "case"),
    ("Cherokee has small letters, too", "\u13a0", "case"),
    ("Deseret, beyond 16 bits", "\U00010400", "case"),
    ("zero-width joiner stays", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "case"),
    ("emoji with a modifier", "OK \U0001f44d\U0001f3fd", "case"),
    ("a flag and a variation selector", "\U0001f1e8\U0001f1ed \u2764\ufe0f", "case"),
    ("full width letters stay wide", "\uff21\uff42", "case"),
    ("Japanese", "\u65e5\u672c", "case"),
    ("private use and a noncharacter", "\ue000\ufffe", "case"),
    ("case and sharp s stay", " Stra\xdfe ", "none"),
    ("NFC all the same", "CAFE\u0301", "none"),
    ("blanks all the same", "\ufeffTwo\u3000Words\x85", "none"),
    ("dotted capital i", "\u0130", "none"),
]


def text():
    spec = dn.Text().to_spec()
    found = kind_file(
        "Any text: the first 8 bytes of the SHA-256 of what tidy makes of it, as a number.",
        [
            (dn.Text(), ["x" * 1024]),
            (dn.Text("none", 5), ["abcde", "  abcde  ", "\u00fc\u00fca"]),
            (skips(dn.Text()), ["ibuprofen", None]),
        ],
        [
            ("an empty text", dn.Text(), ""),
            ("a blank", dn.Text(), " "),
            ("listed blanks alone", dn.Text(), "\t\u0085\u00a0\u3000\ufeff"),
            ("line ends", dn.Text(), "\r\n"),
            ("a skip of a question that must be answered", dn.Text(), None),
            ("a number", dn.Text(), 7),
            ("a lone surrogate", dn.Text(), "a\ud800"),
            ("1025 bytes", dn.Text(), "x" * 1025),
            ("6 bytes of UTF-8", dn.Text("none", 5), "\u00fc\u00fc\u00fc"),
        ],
        [
            ("another fold", {**spec, "fold": "lower"}),
            ("no bytes", {**spec, "max_bytes": 0}),
            ("too many bytes", {**spec, "max_bytes": 1025}),
            ("candidates", dn.Text().about(["a", "b"]).to_spec()),
        ],
    )
    found["good"] = [*map(spelling, *zip(*SPELLINGS, strict=True)), *found["good"]]
    return found


def spelling(why, answer, fold):
    domain = dn.Text(fold)
    case = {"domain": domain.to_spec(), "answer": answer, "value": encoded(domain, answer)}
    return {"why": why, **case, "tidy": tidy(answer, fold)}


def choices():
    whole, one = dn.Items(["a", "b", "c"]), dn.Items(["a", "b"], 1)
    good = [
        (TOOLS, [[], ["paper"], ["desktop", "phone"], ["tablet", "laptop", "phone"]]),
        (whole, [[], ["c", "a", "b"]]),
        (one, [[], ["b"]]),
        (skips(TOOLS), [None, [], ["paper"], ["phone", "laptop", "tablet"]]),
    ]
    bad = [
        ("a text", TOOLS, "paper"),
        ("an answer that is not listed", TOOLS, ["paper", "pen"]),
        ("an answer twice", TOOLS, ["paper", "paper"]),
        ("too many", TOOLS, ["phone", "laptop", "tablet", "desktop"]),
        ("a skip of a question that must be answered", TOOLS, None),
        ("a skip among answers", skips(TOOLS), ["paper", None]),
        ("a place", TOOLS, [0]),
        ("the label of a skip", skips(TOOLS), ["(no answer)"]),
    ]
    spec = TOOLS.to_spec()
    domains = [
        ("no answer may be ticked", {**spec, "at_most": 0}),
        ("more than there are", {**spec, "at_most": 6}),
        ("at_most is a text", {**spec, "at_most": "3"}),
        ("at_most is a truth value", {**spec, "at_most": True}),
        ("one answer", {**spec, "answers": ["phone"], "at_most": 1}),
        ("an answer twice in the list", {**spec, "answers": ["a", "b", "a"]}),
        ("answers are no list", {**spec, "answers": "phone"}),
        ("an answer like the skip", {**skips(TOOLS).to_spec(), "answers": ["a", "(no answer)"]}),
        ("a size in place of answers", dn.Items(5, 3).to_spec()),
    ]
    about = "A set of answers: at_most places, filled up with the places after the list."
    return kind_file(about, good, bad, domains)


def several():
    pair = dn.Several({"smoking": SIX, "sleep": dn.Number(0, 24, 0.25, optional=True)})
    words = dn.Several({"drug": dn.Text(), "remote": dn.YesNo()})
    smoking = ("never", "daily")
    good = [
        (pair, [{"smoking": s, "sleep": h} for s, h in product(smoking, (0, 7.5, None))]),
        (words, [{"drug": " Ibuprofen ", "remote": remote} for remote in (True, False)]),
    ]
    bad = [
        ("an answer is missing", pair, {"smoking": "never"}),
        ("an answer that is not listed", pair, {"smoking": "seldom", "sleep": 7}),
        ("a skip of a question that must be answered", words, {"drug": None, "remote": True}),
        ("one answer", pair, "never"),
    ]
    spec = pair.to_spec()
    domains = [
        ("no parts", {**spec, "parts": []}),
        ("one name twice", {**spec, "parts": [spec["parts"][0]] * 2}),
        ("a part without a name", {**spec, "parts": [SIX.to_spec()]}),
        ("skipped as a whole", {**spec, "optional": True}),
    ]
    return kind_file("Answers to several questions, in order.", good, bad, domains)


KINDS = {
    "choice": choice,
    "yes-no": yes_no,
    "number": number,
    "number-edges": number_edges,
    "text": text,
    "choices": choices,
    "several": several,
}


# ---- tallies

TALLIES = {
    "oue": (dn.OUE(["car", "train", "other"], 1.0), ["car", "train", "car"] * 20),
    "drr": (MECHANISMS[44], [-1, 0.25, None] * 20),
    "joint": (MECHANISMS[52], [{"a": "no", "b": 3}, {"a": "yes", "b": 19}] * 30),
}


def write_tally(path, m, answers):
    path.parent.mkdir(parents=True, exist_ok=True)
    reports = m.privatize(answers, np.random.default_rng(1))
    reports.ids = np.arange(60 * 16, dtype=np.uint16).astype(np.uint8).reshape(60, 16)
    path.write_bytes(m.tally(reports).to_bytes())


def write(path, found):
    """One case in a line."""
    lists = (f' "{name}": [\n  {lines(found[name])}\n ]' for name in ("good", "bad"))
    parts = (f' "about": {json.dumps(found["about"])}', *lists)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n")


def lines(cases):
    return ",\n  ".join(map(json.dumps, cases))


def main(folder):
    for name, family in mechanisms().items():
        if family.on_devices:
            write(folder / "mechanisms" / f"{name}.json", mechanism_file(family))
    for name, make in KINDS.items():
        write(folder / "kinds" / f"{name}.json", make())
    for name, (m, answers) in TALLIES.items():
        path = folder / "tally" / f"{name}.bin"
        if not path.exists():
            write_tally(path, m, answers)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
