"""docs/architecture.md and the code agree: who may import whom, and how an answer walks."""

import ast
import importlib
import inspect
import json
import re
import subprocess
import sys
import types
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import deniable
import deniable as dn
from places import ROOT

SOURCE = Path(deniable.__file__).parent
PAGE = ROOT / "docs" / "architecture.md"
#: Modules that stand outside of the order.
OUTSIDE = {"__init__", "__main__"}
#: Functions whose first argument is the name of a module.
LOADERS = {"import_module", "__import__", "find_spec", "_load"}


class Import(NamedTuple):
    """One import of a package of ours: where it stands, and what it names."""

    file: str
    #: The function around it, TYPE_CHECKING, or nothing where it runs when the module is loaded.
    within: str
    target: str

    @property
    def package(self):
        return package_of(self.file)


def package_of(file):
    return file.partition("/")[0].removesuffix(".py")


# ---- the page


def section(title):
    """The text under a heading of the page."""
    return re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.M | re.S)[1]


def order():
    """The packages of the picture, from top to bottom."""
    picture = re.search(r"^```\n(.*?)^```", section("The packages"), re.M | re.S)[1]
    return re.findall(r"^ +([a-z]\w*)(?:/|\.py) {2,}\S", picture, re.M)


def hooks():
    """The exceptions that the page names."""
    rows = re.findall(
        r"^\| `([\w/]+\.py): (\w+)` \| `(\w+)` \|", section("Exceptions to the order"), re.M
    )
    return [Import(*row) for row in rows]


def places():
    """Every ``file: function`` of the page, but for the exceptions that are types only."""
    found = re.findall(r"`([\w/]+\.py): ([\w.]+)`", PAGE.read_text())
    return sorted({(file, name) for file, name in found if name != "TYPE_CHECKING"})


# ---- the code


def imports_of(file, text):
    """All imports of `deniable` and `deniable_papers` in the text of a module."""
    return list(_imports(file, ast.parse(text), ""))


def _imports(file, node, within):
    for target in _targets(file, node):
        yield Import(file, within, target)
    for child in ast.iter_child_nodes(node):
        yield from _imports(file, child, _within(node, child, within))


def _within(node, child, within):
    if within == "" and isinstance(node, ast.If) and child in node.body:
        return "TYPE_CHECKING" if ast.unparse(node.test).endswith("TYPE_CHECKING") else ""
    if within == "" and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return node.name
    return within


def _targets(file, node):
    """The packages that one statement or call names; ``__version__`` may be anybody's."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.level:
        here = ["deniable", *Path(file).with_suffix("").parts][: -node.level]
        names = [".".join(filter(None, [*here, node.module]))]
    elif isinstance(node, ast.ImportFrom) and node.module == "deniable":
        names = [f"deniable.{alias.name}" for alias in node.names if alias.name != "__version__"]
    elif isinstance(node, ast.ImportFrom):
        names = [node.module]
    elif isinstance(node, ast.Call) and _called(node.func) in LOADERS and node.args:
        names = [_text(node.args[0])]
    else:
        names = []
    for name in names:
        first, _, rest = name.partition(".")
        if first == "deniable":
            yield rest.partition(".")[0] or "deniable"
        elif first == "deniable_papers":
            yield first


def _called(function):
    return getattr(function, "attr", getattr(function, "id", ""))


def _text(node):
    """What is known of a text: the beginning of an f-string."""
    first = node.values[0] if isinstance(node, ast.JoinedStr) and node.values else node
    known = isinstance(first, ast.Constant) and isinstance(first.value, str)
    return first.value if known else ""


def backward(imports, packages):
    """The imports that go against the order."""
    place = {name: i for i, name in enumerate(packages)}
    beyond = len(packages)
    return [
        one
        for one in imports
        if one.package != one.target
        and place.get(one.target, beyond) >= place.get(one.package, beyond)
    ]


def modules():
    files = {path.relative_to(SOURCE).as_posix(): path for path in sorted(SOURCE.rglob("*.py"))}
    return {file: path for file, path in files.items() if package_of(file) not in OUTSIDE}


@cache
def all_imports():
    found = (imports_of(file, path.read_text()) for file, path in modules().items())
    return [one for some in found for one in some]


def defined(text, name):
    """Whether a module defines a function, a class with a method, or a variable of this name."""
    body = ast.parse(text).body
    for part in name.split("."):
        found = [node for node in body if part in _names(node)]
        if not found:
            return False
        body = getattr(found[0], "body", [])
    return True


def _names(node):
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    return [getattr(node, "name", None)]


# ---- they agree


def test_the_picture_has_every_package_once():
    assert sorted(order()) == sorted({package_of(file) for file in modules()})


@pytest.mark.slow
def test_each_package_imports_only_those_above_it():
    against = backward(all_imports(), order())
    assert set(against) - set(hooks()) == set(), "move the import, or name it on the page"


@pytest.mark.slow
def test_each_exception_is_there():
    against = backward(all_imports(), order())
    assert hooks(), "the page names exceptions"
    assert set(hooks()) - set(against) == set(), "no such import: take it from the page"


def test_exceptions_wait_until_somebody_calls():
    assert all(hook.within for hook in hooks())


def test_the_front_loads_nothing():
    """Anybody may import the version from it only because of that."""
    found = imports_of("__init__.py", (SOURCE / "__init__.py").read_text())
    assert [one for one in found if one.within == ""] == []


@pytest.mark.parametrize(("file", "name"), places())
def test_what_the_page_names_exists(file, name):
    assert (SOURCE / file).is_file(), f"{file} is not there"
    assert defined((SOURCE / file).read_text(), name), f"{file} has no {name}"


def walk():
    """Each row of the walk: the party, the step, and its functions as pairs of module and name."""
    rows = re.findall(r"^\| (device|collector|analyst) \| (.*) \| (.*) \|$", PAGE.read_text(), re.M)
    for who, step, where in rows:
        yield who, step, re.findall(r"`([\w/]+)\.py: ([\w.]+)`", where)


def code_of(module, name):
    """The names, as `walk.py` has them, of what may run where the page names this."""
    module = module.replace("/", ".").removesuffix(".__init__")
    first, _, method = name.partition(".")
    found = getattr(importlib.import_module(f"deniable.{module}"), first)
    kind = found if isinstance(found, type) else type(found)
    methods = [getattr(one, method or "__call__") for one in (kind, *_subclasses(kind))]
    made = [found] if isinstance(found, types.FunctionType) else methods
    codes = [inspect.unwrap(function).__code__ for function in made]
    files = [Path(code.co_filename) for code in codes]  # of subclasses in tests, too
    return {
        f"{file.relative_to(SOURCE).as_posix()}: {code.co_qualname}"
        for file, code in zip(files, codes, strict=True)
        if file.is_relative_to(SOURCE)
    }


def _subclasses(kind):
    return {below for one in kind.__subclasses__() for below in (one, *_subclasses(one))}


@pytest.fixture(scope="module")
def walked(tmp_path_factory):
    """The functions that two answers enter on their way, and when."""
    folder = str(tmp_path_factory.mktemp("walk"))
    done = subprocess.run(
        [sys.executable, ROOT / "tests" / "support" / "walk.py", folder],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.stdout, done.stderr
    return {name: when for when, name in enumerate(json.loads(done.stdout))}


@pytest.mark.network
@pytest.mark.slow
def test_an_answer_walks_as_the_page_says(walked):
    """Each party runs each function of its rows, and first runs them in the order of the rows.

    Of the packages about answers, the walk enters no other one; foundations may run anywhere.
    """
    dn.mechanisms()
    times, named = {}, set()
    for who, step, where in walk():
        assert where, step
        ran = [code_of(*one) & walked.keys() for one in where]
        assert all(ran), f"nobody ran it: {step}"
        named |= {package_of(name.partition(":")[0]) for names in ran for name in names}
        if not step.startswith("or "):
            times.setdefault(who, []).append(min(walked[name] for names in ran for name in names))
    assert set(times) == {"device", "collector", "analyst"}
    everybody = [when for one in times.values() for when in one]
    assert everybody == sorted(everybody)
    entered = {package_of(name.partition(":")[0]) for name in walked}
    assert entered & set(order()[order().index("core") :]) - named == set()


# ---- the checker can fail


PLANTED = {
    "when it is loaded": ("from deniable.views import chart", ""),
    "as a module": ("import deniable.views.charts as charts", ""),
    "from the top": ("from deniable import views", ""),
    "relative": ("from ..views import chart", ""),
    "in a function": ("def f():\n    from deniable.views import chart", "f"),
    "in a method": ("class C:\n    async def m(self):\n        import deniable.views", "m"),
    "for types": ("if TYPE_CHECKING:\n    from deniable.views import chart", "TYPE_CHECKING"),
    "in a branch": ("try:\n    import deniable.views\nexcept ImportError:\n    pass", ""),
    "by name": ("def f():\n    importlib.import_module('deniable.views')", "f"),
    "by a name that is put together": ("import_module(f'deniable.views.{x}')", ""),
}


@pytest.mark.parametrize(("text", "within"), PLANTED.values(), ids=PLANTED)
def test_a_planted_import_is_found(text, within):
    found = imports_of("core/tally.py", text)
    assert found == [Import("core/tally.py", within, "views")]
    assert backward(found, ["core", "views"]) == found
    assert backward(found, ["views", "core"]) == []
    assert backward(found, ["core"]) == found, "a package that is not in the picture"


def test_what_is_not_an_import_of_ours_is_left_alone():
    text = "import json\nfrom deniable import __version__\nfrom deniable.core.tally import Tally"
    found = imports_of("core/task.py", text)
    assert backward(found, ["core"]) == []
    assert imports_of("cli/app.py", "from deniable import OUE") != []


def test_a_name_that_is_missing_is_noticed():
    text = "x = 1\ndef f(): pass\nclass C:\n    def m(self): pass"
    assert all(defined(text, name) for name in ("x", "f", "C", "C.m"))
    assert not any(defined(text, name) for name in ("y", "C.n", "f.m", "D.m"))
