"""Write the bad vectors of the wire format, version 2: what a device or a collector must refuse.

    python tests/vectors/make_bad.py tests/vectors/v2

`bad/manifests.json`: manifests that a device does not answer; where there is a `digest`, it is what
the caller was told. `bad/submissions.json`: bodies that the collector of a manifest does not count.
`bad/books.json`: stories of one device, step by step. Each step serves a manifest, at the same
address or `elsewhere`, gives answers and has the status of the collector; the caller agrees to the
digest `another`. The last step must send nothing new: the bytes of before again, or nothing,
refused with the `type`.
"""

import hashlib
import json
import sys
from copy import deepcopy
from pathlib import Path

from make_wire import fields, sampled

from deniable.answers import Choice, Number, Text, YesNo
from deniable.canonical import canonical
from deniable.collection.manifest import After, Collection, Field, Report
from deniable.collection.questions import Question
from deniable.core.registry import mechanism
from deniable.mechanisms.joint import Joint

#: Promises are broken by so much; readers that compare doubles allow for 1e-9.
MISSED = 2e-6
#: The second example of the specification: a crossing, choices and sets, which come later.
LATER = (
    '{"after":null,"changes":0,"deniable":2,"epsilon":3,"fields":[{"name":"region","values":["north",'
    '"south"]}],"questions":[{"answers":["f","m"],"kind":"choice","name":"sex","optional":false,'
    '"ordered":false,"other":null},{"answers":["public","private","none"],"kind":"choice","name":'
    '"sector","optional":false,"ordered":false,"other":null},{"kind":"yes/no","name":"remote",'
    '"optional":true},{"hi":24,"kind":"number","lo":0,"name":"hours","optional":true,"outside":"clip"'
    ',"step":0.25},{"answers":["phone","laptop","tablet","desktop","paper"],"at_most":3,"kind":'
    '"choices","name":"tools","optional":false}],"reports":[{"mechanism":{"branches":[{"mechanism":{'
    '"design":{},"epsilon":1,"name":"grr","thresholds":{"keep":"4106704813397303919"}},"of":["sex",'
    '"sector"],"weight":20480},{"mechanism":{"design":{},"epsilon":1,"name":"grr","thresholds":{'
    '"keep":"4106704813397303919"}},"of":["sex","remote"],"weight":20480},{"mechanism":{"design":{},'
    '"epsilon":1,"name":"oue","thresholds":{"one":"9223372036854775808","zero":"4961093570831980854"'
    '}},"of":["sector","remote"],"weight":24576}],"design":{},"epsilon":1,"name":"joint"},"name":'
    '"work","of":["sex","sector","remote"]},{"mechanism":{"design":{"ell":1,"fine":32,"shown":8},'
    '"epsilon":1,"name":"drr","thresholds":{"keep":"6717849057872324379"}},"name":"hours","of":['
    '"hours"]},{"mechanism":{"design":{"tau":1,"w":1},"epsilon":1,"name":"setselect","thresholds":{'
    '"one":"3811785494975100900","zero":"1402277517756849783"}},"name":"tools","of":["tools"]}],'
    '"rounds":1,"unbounded":[]}'
)
assert hashlib.sha256(LATER.encode()).hexdigest().startswith("c7e5ed6227733df651295a85b8fd9d89")
#: A manifest of version 0.1, written canonically.
VERSION_1 = (
    '{"about":"","changes":0,"deniable":1,"divide":"split","epsilon":1,"questions":[{"ask":"?",'
    '"kind":"yes/no","mechanism":{"deniable":1,"design":{},"domain":{"labels":["yes","no"]},'
    '"epsilon":1,"mechanism":"brr","thresholds":{"keep":"13485803452539748543"}},"name":"ever"}],'
    '"rounds":1,"title":"t"}'
)
GONE = object()

WAY = mechanism("grr", Choice(["car", "train", "none"]), 1.0)
EVER = mechanism("brr", YesNo(), 1.0)
SIMPLE = Collection.split({"way": WAY, "ever": EVER}, 2.0)
DRAWN = Collection(
    (Question("way", WAY.domain), Question("ever", EVER.domain)),
    (Report("all", ("way", "ever"), Joint.of_questions({"way": WAY, "ever": EVER})),),
    1.0,
)
PUBLIC = Collection.split(
    {"way": WAY},
    1.0,
    fields=(Field("region", ("north", "south")),),
    after=After("0" * 64, "0" * 64, 2),
)
AGAIN = Collection.split(
    {"way": mechanism("lgrr", WAY.domain, 1.0), "ever": EVER}, 5.0, rounds=3, changes=1
)
NUMBERS = Collection.split({"hours": mechanism("drr", Number(0, 24, 0.25), 1.0)}, 1.0)
BINS = Collection.split({"hours": mechanism("hh", Number(0, 24, 0.25), 1.0)}, 1.0)


def changed(collection, *paths, **top):
    """The manifest with other values at some paths, each ``(key, ..., value)``."""
    data = json.loads(collection.manifest)
    for *path, last, value in (*paths, *top.items()):
        inside = data
        for key in path:
            inside = inside[key]
        if value is GONE:
            del inside[last]
        else:
            inside[last] = deepcopy(value)
    return canonical(data).decode()


# ---- manifests


def bytes_of(manifest):
    """Line 1: what is not canonical JSON."""
    yield "nothing", ""
    yield "not JSON", manifest[:-1]
    yield "a text", '"manifest"'
    yield "a list", "[]"
    yield "bytes after the end", manifest + "{}"
    yield "a line end", manifest + "\n"
    yield "a mark of the encoding", "\ufeff" + manifest
    yield "a blank", manifest.replace(":", ": ", 1)
    yield (
        "keys that are not sorted",
        manifest.replace('"after":null,', "").replace(
            '"unbounded":[]', '"unbounded":[],"after":null'
        ),
    )
    yield "a key that stands twice", manifest.replace('"rounds":1', '"rounds":1,"rounds":1')
    yield "an odd escape", manifest.replace('"car"', '"c\\u0061r"')
    yield "an escape that JSON does not need", manifest.replace('"car"', '"c\\/r"')
    yield "a capital in an escape", manifest.replace('"car"', '"c\\u001Fr"')
    yield "a lone surrogate", manifest.replace('"car"', '"\\ud800"')
    yield "2.0", manifest.replace('"epsilon":2', '"epsilon":2.0', 1)
    yield "an exponent", manifest.replace('"epsilon":2', '"epsilon":2e0', 1)
    yield "-0", manifest.replace('"changes":0', '"changes":-0')
    yield "1e400", manifest.replace('"epsilon":2', '"epsilon":1e400', 1)
    yield "NaN", manifest.replace('"epsilon":2', '"epsilon":NaN', 1)
    yield (
        "more digits than a double has",
        manifest.replace('"epsilon":2', '"epsilon":2.00000000000000000001', 1),
    )
    yield "a zero before a number", manifest.replace('"epsilon":2', '"epsilon":02', 1)


def shapes():
    """Line 4: other keys, types, names, ids and limits."""
    for key in json.loads(SIMPLE.manifest):
        if key != "deniable":
            yield f"without {key}", changed(SIMPLE, (key, GONE))
            yield f"{key} is a text", changed(SIMPLE, (key, "1"))
        if key not in ("deniable", "after"):
            yield f"{key} is null", changed(SIMPLE, (key, None))
    for value in (0, 1, None, False, "", "region", [], {}):
        yield f"the field {json.dumps(value)}", changed(SIMPLE, fields=[value])
    for value in (0, None, False, "", "Way", [], ["way"], {}):
        yield f"unbounded [{json.dumps(value)}]", changed(SIMPLE, unbounded=[value])
    yield "257 unbounded reports", changed(SIMPLE, unbounded=["way"] * 257)
    yield "a key too many", changed(SIMPLE, title="t")
    yield "a question with a key too many", changed(SIMPLE, ("questions", 0, "ask", "How?"))
    yield "a question without a name", changed(SIMPLE, ("questions", 0, "name", GONE))
    yield "a question without a kind", changed(SIMPLE, ("questions", 0, "kind", GONE))
    yield "a question without optional", changed(SIMPLE, ("questions", 0, "optional", GONE))
    yield (
        "a question with the keys of another kind",
        changed(
            SIMPLE,
            ("questions", 0, {"name": "way", "kind": "number", "optional": False, "answers": []}),
        ),
    )
    yield "a question that is a text", changed(SIMPLE, ("questions", 0, "way"))
    for key in ("name", "of", "mechanism"):
        yield f"a report without {key}", changed(SIMPLE, ("reports", 0, key, GONE))
    yield "a report with a key too many", changed(SIMPLE, ("reports", 0, "epsilon", 1))
    yield "a report that is null", changed(SIMPLE, ("reports", 0, None))
    leaf = ("reports", 0, "mechanism")
    for key in ("name", "epsilon", "design", "thresholds"):
        yield f"a mechanism without {key}", changed(SIMPLE, (*leaf, key, GONE))
    yield "a mechanism with a key too many", changed(SIMPLE, (*leaf, "domain", {}))
    yield "a mechanism that is a text", changed(SIMPLE, (*leaf, "grr"))
    yield "a mechanism whose epsilon is a text", changed(SIMPLE, (*leaf, "epsilon", "1"))
    yield "a mechanism whose epsilon is true", changed(SIMPLE, (*leaf, "epsilon", True))
    yield "a threshold that is a number", changed(SIMPLE, (*leaf, "thresholds", "keep", 1))
    yield "a threshold of 0", changed(SIMPLE, (*leaf, "thresholds", "keep", "0"))
    yield "a threshold below 0", changed(SIMPLE, (*leaf, "thresholds", "keep", "-1"))
    yield "a zero before a threshold", changed(SIMPLE, (*leaf, "thresholds", "keep", "01"))
    yield "a threshold of 21 digits", changed(SIMPLE, (*leaf, "thresholds", "keep", "1" * 21))
    yield "a threshold with a blank", changed(SIMPLE, (*leaf, "thresholds", "keep", "1 "))
    yield "a threshold too many", changed(SIMPLE, (*leaf, "thresholds", "zero", "1"))
    yield "thresholds that are a list", changed(SIMPLE, (*leaf, "thresholds", []))
    yield "an integer too many", changed(SIMPLE, (*leaf, "design", "g", 2))
    for design in (0, None, [], "", True):
        why = f"the design {json.dumps(design)} of a mechanism without integers"
        yield why, changed(SIMPLE, (*leaf, "design", design))
    wanted = ("reports", 0, "mechanism", "design")
    yield "an integer that is missing", changed(NUMBERS, (*wanted, "ell", GONE))
    yield "an integer that is a text", changed(NUMBERS, (*wanted, "ell", "1"))
    yield "an integer that is none", changed(NUMBERS, (*wanted, "ell", 1.5))
    yield "an integer that is true", changed(NUMBERS, (*wanted, "ell", True))


def names():
    both = ("questions", 0, "name"), ("reports", 0, "name")
    for name in ("", "Way", "2way", "_way", "way-home", "weg_nach_ö", "w" * 33, "way\n"):
        paths = [(*path, name) for path in both]
        yield f"the name {json.dumps(name)}", changed(SIMPLE, *paths, ("reports", 0, "of", 0, name))
    yield "a name that is a number", changed(SIMPLE, *((*path, 1) for path in both))
    yield (
        "two questions with one name",
        changed(
            SIMPLE,
            ("questions", 1, "name", "way"),
            ("reports", 1, "of", 0, "way"),
            ("reports", 1, "name", "way"),
        ),
    )
    twice = [("questions", 1, json.loads(SIMPLE.manifest)["questions"][0])]
    twice.append(("reports", 1, "of", 0, "way"))
    twice.append(("reports", 1, "name", "way"))
    yield "a question twice", changed(SIMPLE, *twice)
    broken = ("reports", 0, "mechanism", "thresholds", "keep", str(2**64 - 1))
    yield "a question twice, and a broken promise", changed(SIMPLE, *twice, broken)
    yield (
        "a report about one question with another name",
        changed(SIMPLE, ("reports", 0, "name", "path")),
    )
    yield (
        "a report about several with the name of a question",
        changed(DRAWN, ("reports", 0, "name", "way")),
    )
    yield "a field with the name of a question", changed(PUBLIC, ("fields", 0, "name", "way"))
    field = {"name": "all", "values": ["a", "b"]}
    yield "a field with the name of a report", changed(DRAWN, fields=[field])
    yield "two fields with one name", changed(PUBLIC, fields=[field, field])
    report = json.loads(SIMPLE.manifest)["reports"][0]
    yield "a report twice", changed(SIMPLE, ("reports", [report, report]), epsilon=4)


def ids():
    for why, bad in (
        ("empty", ""),
        ("with a blank at the end", "a "),
        ("with two blanks", "a  b"),
        ("with an odd blank", "a\u00a0b"),
        ("with a line end", "a\nb"),
        ("with a control character", "a\x7f"),
        ("not NFC", "e\u0301"),
        ("of 101 characters", "🙂" * 101),
        ("that is a number", 1),
        ("that is null", None),
        ("that stands twice", "train"),
    ):
        yield f"an answer {why}", changed(SIMPLE, ("questions", 0, "answers", 0, bad))
        again = "south" if bad == "train" else bad
        yield f"a value of a field {why}", changed(PUBLIC, ("fields", 0, "values", 0, again))
    yield (
        "a size in place of answers",
        changed(SIMPLE, ("questions", 0, "answers", GONE), ("questions", 0, "size", 3)),
    )
    yield "one answer", changed(SIMPLE, ("questions", 0, "answers", ["car"]))


def limits():
    yield "epsilon 0", changed(SIMPLE, epsilon=0)
    yield "epsilon 32.5", changed(SIMPLE, epsilon=32.5)
    yield "epsilon 2^-21", changed(SIMPLE, epsilon=2.0**-21)
    yield "epsilon true", changed(SIMPLE, epsilon=True)
    for rounds in (0, -1, 65_536, 1.5, True, []):
        yield f"rounds {json.dumps(rounds)}", changed(SIMPLE, rounds=rounds)
    yield "changes below 0", changed(SIMPLE, changes=-1)
    yield "changes in one round", changed(SIMPLE, changes=1)
    yield "as many changes as rounds", changed(AGAIN, changes=3)
    yield "no questions", changed(SIMPLE, questions=[], reports=[])
    yield "257 questions", many(257)
    yield "no reports", changed(SIMPLE, reports=[])
    field = {"name": "age", "values": ["young", "old"]}
    yield "a field without values", changed(PUBLIC, ("fields", 0, "values", GONE))
    yield "a field with a key too many", changed(PUBLIC, ("fields", 0, "ask", "?"))
    yield "a field with one value", changed(PUBLIC, ("fields", 0, "values", ["north"]))
    yield "a field whose values are a text", changed(PUBLIC, ("fields", 0, "values", "north"))
    yield "1001 values of a field", changed(PUBLIC, fields=[{**field, "values": some(1001)}])
    yield "four fields", changed(PUBLIC, fields=[{**field, "name": f"f{i}"} for i in range(4)])
    two = [{"name": f"f{i}", "values": some(32)} for i in range(2)]
    yield "1024 combinations of values", changed(PUBLIC, fields=two)
    yield "more sums than 2^20", with_words({"cohorts": 65_536, "width": 1024}, 1)
    yield "more coins than 2^17", with_words({"cohorts": 16, "width": 65_536}, 3)


def many(count):
    """A manifest with so many questions, of tiny epsilons."""
    leaf = mechanism("brr", YesNo(), 0.001).to_leaf()
    names = [f"q{i}" for i in range(count)]
    asked = [{"name": name, "kind": "yes/no", "optional": False} for name in names]
    reports = [{"name": name, "of": [name], "mechanism": leaf} for name in names]
    return changed(SIMPLE, questions=asked, reports=reports)


def some(count):
    return [f"v{i}" for i in range(count)]


def with_words(design, count):
    """Questions about any text whose mechanisms have so large a design."""
    m = mechanism("cms", Text(), 0.5, cohorts=16, width=16)
    names = [f"q{i}" for i in range(count)]
    collection = Collection.split(dict.fromkeys(names, m), 2.0)
    paths = [("reports", i, "mechanism", "design", {**design, "seed": 0}) for i in range(count)]
    return changed(collection, *paths)


def steps():
    after = json.loads(PUBLIC.manifest)["after"]
    for why, keys in {
        "without root": {"root": GONE},
        "with a key too many": {"next": None},
        "whose root is no digest": {"root": "0" * 63},
        "whose root is a number": {"root": 0},
        "whose parent has capitals": {"parent": "A" * 64, "step": 3},
        "with step 1": {"step": 1},
        "with step 65536": {"step": 65_536, "parent": "1" * 64},
        "with step true": {"step": True},
        "with another parent at step 2": {"parent": "1" * 64},
    }.items():
        made = {key: value for key, value in {**after, **keys}.items() if value is not GONE}
        yield f"a step {why}", changed(PUBLIC, after=made)
    yield "a step that is a list", changed(PUBLIC, after=[])


def branches():
    """Line 5: what `of` and branches say."""
    yield "a report about nothing", changed(SIMPLE, ("reports", 0, "of", []))
    yield "a report about an unknown question", changed(SIMPLE, ("reports", 0, "of", ["path"]))
    yield "a report about a question twice", changed(DRAWN, ("reports", 0, "of", ["way", "way"]))
    yield "of is a text", changed(SIMPLE, ("reports", 0, "of", "way"))
    question = {"name": "more", "kind": "yes/no", "optional": False}
    asked = json.loads(SIMPLE.manifest)["questions"]
    yield "a question in no report", changed(SIMPLE, questions=[*asked, question])
    place = ("reports", 0, "mechanism", "branches")
    first, second = json.loads(DRAWN.manifest)["reports"][0]["mechanism"]["branches"]
    yield "weights that sum to 65535", changed(DRAWN, (*place, 0, "weight", 32_767))
    yield "weights that sum to 65537", changed(DRAWN, (*place, 0, "weight", 32_769))
    yield "a weight of 0", changed(DRAWN, (*place, 0, "weight", 0), (*place, 1, "weight", 65_536))
    yield (
        "a weight below 0",
        changed(DRAWN, (*place, 0, "weight", -1), (*place, 1, "weight", 65_537)),
    )
    yield (
        "weights with halves",
        changed(DRAWN, (*place, 0, "weight", 32_767.5), (*place, 1, "weight", 32_768.5)),
    )
    yield "a weight that is a text", changed(DRAWN, (*place, 0, "weight", "32768"))
    yield "no branches", changed(DRAWN, (*place, []))
    yield "branches that are an object", changed(DRAWN, (*place, {}))
    yield "a branch without a weight", changed(DRAWN, (*place, 0, "weight", GONE))
    yield "a branch without of", changed(DRAWN, (*place, 0, "of", GONE))
    yield "a branch with a key too many", changed(DRAWN, (*place, 0, "depth", 1))
    yield "a branch about nothing", changed(DRAWN, (*place, 0, "of", []))
    yield (
        "a branch about a question that is not the report's",
        changed(DRAWN, (*place, 0, "of", ["path"])),
    )
    yield (
        "a question that no branch is about",
        changed(DRAWN, (*place, [{**first, "weight": 65_536}])),
    )
    yield "a design in a joint", changed(DRAWN, ("reports", 0, "mechanism", "design", "bins", 2))
    inner = json.loads(DRAWN.manifest)["reports"][0]["mechanism"]
    yield "a joint in a joint", changed(DRAWN, (*place, 1, {**second, "mechanism": inner}))
    yield "branches in two rounds", changed(DRAWN, rounds=2, epsilon=2)


def unknown():
    """Lines 2 and 5: `unsupported`."""
    for version in (1, 3, "2", None, True):
        yield f"version {json.dumps(version)}", changed(SIMPLE, deniable=version)
    yield "no version", changed(SIMPLE, deniable=GONE)
    yield "a manifest of version 0.1", VERSION_1
    yield "the second example of the specification", LATER
    yield "an unknown kind", changed(SIMPLE, ("questions", 0, "kind", "smell"))
    parts = [{"name": "a", **YesNo().to_spec()}]
    several = {"name": "way", "kind": "several", "optional": False, "parts": parts}
    yield "a kind of specs only", changed(SIMPLE, ("questions", 0, several))
    yield "a kind in capitals", changed(SIMPLE, ("questions", 1, "kind", "Yes/no"))
    yield "an unknown mechanism", changed(SIMPLE, ("reports", 0, "mechanism", "name", "magic"))
    yield "a mechanism in capitals", changed(SIMPLE, ("reports", 0, "mechanism", "name", "GRR"))
    place = ("reports", 0, "mechanism", "branches")
    yield (
        "an unknown mechanism in a branch",
        changed(DRAWN, (*place, 0, "mechanism", "name", "magic")),
    )
    split = {"name": "split", "design": {}, "epsilon": 1, "branches": []}
    yield "a mechanism that is not for devices", changed(DRAWN, ("reports", 0, "mechanism", split))
    cell = mechanism("grr", Choice(some(6)), 1.0).to_leaf()
    crossing = {"weight": 65_536, "of": ["way", "ever"], "mechanism": cell}
    yield "a branch about two questions", changed(DRAWN, (*place, [crossing]))


def promises():
    """Lines 6 to 9: `broken-promise`."""
    leaf = ("reports", 0, "mechanism")
    declared = WAY.guarantee.epsilon
    yield "a mechanism above its epsilon", changed(SIMPLE, (*leaf, "epsilon", declared - MISSED))
    for epsilon in (0, -1, 33):
        yield (
            f"a mechanism whose epsilon is {epsilon}",
            changed(SIMPLE, (*leaf, "epsilon", epsilon)),
        )
        yield f"a joint whose epsilon is {epsilon}", changed(DRAWN, (*leaf, "epsilon", epsilon))
    yield "a threshold of 2^64", changed(SIMPLE, (*leaf, "thresholds", "keep", str(1 << 64)))
    yield (
        "a mechanism for other answers",
        changed(SIMPLE, ("questions", 0, {"name": "way", **Text().to_spec()})),
    )
    yield (
        "more answers than the threshold was made for",
        changed(SIMPLE, ("questions", 0, "answers", ["car", "train", "none", "rocket"])),
    )
    yield "a mechanism of one question for several", changed(DRAWN, (*leaf, WAY.to_leaf()))
    yield "an integer below its range", changed(NUMBERS, (*leaf, "design", "ell", 0))
    yield "an integer above its range", changed(NUMBERS, (*leaf, "design", "shown", 33))
    number = NUMBERS.reports[0].mechanism.guarantee.epsilon
    yield "a number above its epsilon", changed(NUMBERS, (*leaf, "epsilon", number - MISSED))
    yield (
        "a skip that the threshold was not made for",
        changed(NUMBERS, ("questions", 0, "optional", True)),
    )
    steps = ("questions", 0, "step", 24 * 2.0**-31)
    yield "more than 2^31 steps, in bins", changed(BINS, steps)
    branch = (*leaf, "branches", 0, "mechanism")
    yield "a branch above its epsilon", changed(DRAWN, (*branch, "epsilon", declared - MISSED))
    yield "a joint below its branches", changed(DRAWN, (*leaf, "epsilon", declared - MISSED))
    kept = AGAIN.reports[0].mechanism
    for name, found in (("epsilon_inf", kept.epsilon_inf), ("epsilon_1", kept.once.epsilon)):
        yield f"a mechanism above its {name}", changed(AGAIN, (*leaf, name, found - MISSED))
    yield "epsilon_1 above epsilon_inf", changed(AGAIN, (*leaf, "epsilon_1", 1.5))
    yield "an unbounded report that is bounded", changed(SIMPLE, unbounded=["way"])
    yield "reports above the whole", changed(SIMPLE, epsilon=SIMPLE.spent - MISSED)
    yield "rounds above the whole", changed(SIMPLE, rounds=2, epsilon=4 - MISSED)
    yield "a remembered report above the whole", changed(AGAIN, epsilon=AGAIN.spent - MISSED)
    yield "changes above the whole", changed(AGAIN, changes=2, epsilon=6 - MISSED)
    twice = fields()[0]
    yield "a question in two reports above the whole", changed(twice, epsilon=twice.spent - MISSED)
    for name in ("lblh", "lolh", "dbitflippm"):
        cells = Collection.split({"way": mechanism(name, WAY.domain, 0.5)}, 8.0, rounds=3)
        yield f"changes where answers share the draws of {name}", changed(cells, changes=1)


def bad_manifests():
    """What devices refuse, line by line of what they check."""
    for kind, made in (
        ("bad-manifest", bytes_of(SIMPLE.manifest.decode())),
        ("bad-manifest", shapes()),
        ("bad-manifest", names()),
        ("bad-manifest", ids()),
        ("bad-manifest", limits()),
        ("bad-manifest", steps()),
        ("bad-manifest", branches()),
        ("unsupported", unknown()),
        ("broken-promise", promises()),
    ):
        yield from ({"why": why, "type": kind, "manifest": text} for why, text in made)
    other = {"manifest": SIMPLE.manifest.decode(), "digest": PUBLIC.digest}
    yield {"why": "another manifest than was told", "type": "other-collection", **other}
    most = changed(SIMPLE, epsilon=8.001)
    yield {"why": "more than is allowed unless asked", "type": "too-much", "manifest": most}


# ---- submissions


def bad_submissions():
    """What is wrong in a body, whatever its mechanisms are."""
    collection, (good, *_), _ = fields()
    body, text = json.loads(good["body"]), good["body"]
    rows, public = body["reports"], body["fields"]

    def other(**parts):
        kept = {key: value for key, value in {**body, **parts}.items() if value is not GONE}
        return canonical(kept).decode()

    found = [
        ("not JSON", "malformed", text[:-1]),
        ("bytes after the end", "malformed", text + "{}"),
        ("nothing", "malformed", ""),
        ("a list", "malformed", "[]"),
        ("an unknown key", "malformed", other(clock=1)),
        *((f"without {key}", "malformed", other(**{key: GONE})) for key in body),
        ("a key that stands twice", "malformed", text.replace("{", '{"round":1,', 1)),
        ("a field that stands twice", "malformed", text.replace('"age":', '"age":"old","age":')),
        ("a report that stands twice", "malformed", text.replace('"way":', '"way":"00","way":')),
        ("an id that is too short", "malformed", other(id=body["id"][2:])),
        ("an id in capitals", "malformed", other(id="AB" * 16)),
        ("a round that is a text", "malformed", other(round="1")),
        ("a round that is no integer", "malformed", other(round=1.5)),
        ("a report that is a number", "malformed", other(reports={**rows, "way": 1})),
        ("a report that is null", "malformed", other(reports={**rows, "way": None})),
        ("a field that is a number", "malformed", other(fields={**public, "age": 1})),
        ("another digest", "other-collection", other(collection="0" * 64)),
        ("round 0", "impossible-report", other(round=0)),
        ("a round too many", "impossible-report", other(round=2)),
        ("no reports", "impossible-report", other(reports={})),
        ("a report is missing", "impossible-report", other(reports={"both": rows["both"]})),
        ("an unknown report", "impossible-report", other(reports={**rows, "more": "00"})),
        ("no fields", "impossible-report", other(fields={})),
        ("a field is missing", "impossible-report", other(fields={"age": public["age"]})),
        ("an unknown field", "impossible-report", other(fields={**public, "sex": "f"})),
        ("an unknown value", "impossible-report", other(fields={**public, "age": "old"})),
        ("a branch too many", "impossible-report", other(reports={**rows, "both": "0200"})),
        ("an answer too many", "impossible-report", other(reports={**rows, "both": "0102"})),
    ]
    for why, kind, made in found:
        yield {"why": why, "type": kind, "manifest": collection.manifest.decode(), "body": made}
    collection, (good, *_), _ = sampled()
    longest = collection.reports[0].mechanism.dtype.itemsize
    for why, row in (
        ("padding whose last byte is not zero", bytes(longest - 1) + b"\x01"),
        ("padding whose first byte is not zero", b"\x00\x00\x01" + bytes(longest - 3)),
        ("a branch beyond the last", b"\x05" + bytes(longest - 1)),
    ):
        made = {**json.loads(good["body"]), "reports": {"all": row.hex()}}
        about = {"why": why, "type": "impossible-report", "manifest": collection.manifest.decode()}
        yield {**about, "body": canonical(made).decode()}


# ---- books


def bad_books():
    """What a device must not do though each step alone would be fine."""
    car, train = {"way": "car", "ever": True}, {"way": "train", "ever": False}

    def step(collection, answers=car, status=201, **more):
        served = {"manifest": collection.manifest.decode(), "answers": answers}
        return {**served, "round": 1, "status": status, **more}

    yield "a round twice", "answered", [step(SIMPLE), step(SIMPLE, train)]
    yield "a drawn question drawn again", "answered", [step(DRAWN), step(DRAWN, train)]
    for status in (400, 409, 422):
        story = [step(SIMPLE, status=status), step(SIMPLE, train)]
        yield f"a submission made anew that was refused with {status}", "answered", story
    yield "another collection that nobody agreed to", "changed", [step(SIMPLE), step(DRAWN)]
    wrong = step(DRAWN, another=SIMPLE.digest)
    yield "another collection than was agreed to", "changed", [step(SIMPLE), wrong]
    refused = [step(SIMPLE, status=422), step(DRAWN)]
    yield "another collection after a refusal", "changed", refused
    second = Collection.split({"ever": EVER}, 1.0, after=After(SIMPLE.digest, SIMPLE.digest, 2))
    third = Collection.split({"ever": EVER}, 1.0, after=After(SIMPLE.digest, second.digest, 3))
    ever = {"ever": True}
    after = step(second, ever, another=second.digest)
    yield "a step after its root", "answered", [step(SIMPLE), after]
    later = step(third, ever, another=third.digest)
    yield "a step after another step", "answered", [step(second, ever), later]
    root = step(SIMPLE, another=SIMPLE.digest)
    yield "a root after its step", "answered", [step(second, ever), root]
    story = [step(SIMPLE), step(SIMPLE, train, elsewhere=True)]
    yield "a round twice, at another address", "answered", story
    story = [step(SIMPLE, status=422), step(SIMPLE, train, elsewhere=True)]
    yield "a submission made anew at another address", "answered", story
    story = [step(DRAWN), step(DRAWN, train, elsewhere=True)]
    yield "a drawn question drawn again at another address", "answered", story
    after = step(second, ever, another=second.digest, elsewhere=True)
    yield "a step after its root, at another address", "answered", [step(SIMPLE), after]
    root = step(SIMPLE, elsewhere=True)
    yield "a root after its step, at another address", "answered", [step(second, ever), root]


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    books = [{"why": why, "type": kind, "steps": story} for why, kind, story in bad_books()]
    for name, found in (
        ("manifests", [*bad_manifests()]),
        ("submissions", [*bad_submissions()]),
        ("books", books),
    ):
        text = json.dumps(found, ensure_ascii=False, indent=1) + "\n"
        (folder / f"{name}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) / "bad")
