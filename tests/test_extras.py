"""What a base install says where something optional is needed: always the same sentence."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from command import run
from deniable import extras
from deniable.errors import MissingExtra

ROOT = Path(__file__).parents[1]
SENTENCE = re.compile(r"'\w+' is not installed\. Install it with: pip install 'deniable\[(\w+)\]'")
#: Modules of the optional packages whose names are not their own.
MODULES = {"vl-convert-python": "vl_convert", "multi-freq-ldpy": "multi_freq_ldpy",
           "pure-ldp": "pure_ldp", "scikit-learn": "sklearn"}  # fmt: skip
#: Everything below runs where no optional package can be imported.
PROGRAM = """
import importlib, io, json, pkgutil, sys
from contextlib import redirect_stderr, redirect_stdout
_, blocked, commands = sys.argv
sys.modules.update(dict.fromkeys(blocked.split()))
import deniable as dn
from deniable.cli import main
from deniable.errors import MissingExtra

def typed(*words):
    sys.argv = ["deniable", *words]
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()) as said:
        try:
            main()
        except SystemExit:
            return said.getvalue()

def called(function):
    try:
        function()
    except MissingExtra as error:
        return str(error)
    except Exception as error:
        return repr(error)
    return ""

m = dn.GRR(["a", "b"], 1.0)
reports = m.privatize(["a"] * 9)
tally = m.tally(reports)
e, series = tally.estimate(), dn.Series.of({"spring": tally})
open("some.tally", "wb").write(tally.to_bytes())
open("some.parquet", "wb").write(b"PAR1" + bytes(9))
typed("init", "--example")
client = dn.Client("survey.toml")
found = {words: typed(*words.split()) for words in json.loads(commands)}
found |= {name: called(function) for name, function in {
    "e.to_pandas": e.to_pandas, "e.to_arrow": e.to_arrow, "e.plot": e.plot,
    "e.save": lambda: e.save("e.png"), "series.plot": series.plot,
    "series.to_pandas": series.to_pandas, "reports.to_arrow": reports.to_arrow,
    "reports.to_parquet": lambda: reports.to_parquet("r.parquet"),
    "Reports.from_parquet": lambda: dn.Reports.from_parquet("some.parquet"),
    "client.privatize_table": lambda: client.privatize_table("some.parquet"),
    "guarantee.plot": dn.LGRR(4, 2.0, 1.0).guarantee.plot,
    "inference_risk.plot": dn.inference_risk(m).plot,
}.items()}
modules = [one.name for one in pkgutil.walk_packages(dn.__path__, "deniable.", onerror=str)]
modules.remove("deniable.__main__")
found |= {name: called(lambda: importlib.import_module(name)) for name in modules}
print(json.dumps(found))
"""
COMMANDS = {
    "demo -n 10": "serve",
    "serve survey.toml": "serve",
    "token some.db": "serve",
    "verify-store some.db": "serve",
    "backup some.db other.db": "serve",
    "purge some.db --before 2020-01-01": "serve",
    "export some.db folder": "serve",
    "import some.db folder": "serve",
    "simulate -m grr -n 9 --runs 1 -c x.png": "plot",
    "estimate some.tally -c x.html": "plot",
    "estimate some.parquet": "data",
    "series some.tally -c x.svg": "plot",
    "series some.parquet": "data",
    "audit grr -k 2 -c x.svg": "plot",
    "audit --library pure-ldp": "bench",
    "audit --library opendp": "bench",
    "audit --library multi-freq-ldpy": "bench",
    "budget -c x.svg": "plot",
    "manipulate grr -n 9 --runs 1 -c x.svg": "plot",
    "reproduce kairouz": "plot",
    "privatize some.parquet --survey survey.toml -o new": "data",
    "privatize some.parquet --survey survey.toml -o new --engine spark": "spark",
    "mechanisms": "",
    "methods": "",
    "check survey.toml": "",
    "estimate some.tally": "",
    "budget": "",
}
FUNCTIONS = {
    "e.to_pandas": "data",
    "e.to_arrow": "data",
    "e.plot": "plot",
    "e.save": "plot",
    "series.plot": "plot",
    "series.to_pandas": "data",
    "reports.to_arrow": "data",
    "reports.to_parquet": "data",
    "Reports.from_parquet": "data",
    "client.privatize_table": "data",
    "guarantee.plot": "plot",
    "inference_risk.plot": "plot",
}


def optional():
    """The modules of all optional packages of a user."""
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [one for name, some in listed["optional-dependencies"].items() if name != "dev"
              for one in some if not one.startswith("deniable")]  # fmt: skip
    names = [re.match(r"[\w-]+", one)[0] for one in wanted]
    return sorted({MODULES.get(name, name) for name in names})


@pytest.fixture(scope="module")
def base_install(tmp_path_factory):
    """What every command, function and module says without any optional package."""
    command = [sys.executable, "-c", PROGRAM, " ".join(optional()), json.dumps(list(COMMANDS))]
    folder = tmp_path_factory.mktemp("base")
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "extra"), {**COMMANDS, **FUNCTIONS}.items())
def test_what_is_missing_is_named_with_how_to_get_it(base_install, name, extra):
    said = base_install[name]
    assert "No module named" not in said
    assert SENTENCE.findall(said) == ([extra] if extra else [])


@pytest.mark.slow
def test_no_module_fails_in_other_words(base_install):
    imported = {name: said for name, said in base_install.items() if name.startswith("deniable.")}
    assert len(imported) > 100
    assert {said for said in imported.values() if said and not SENTENCE.fullmatch(said)} == set()


@pytest.mark.parametrize("words", ["token", "serve"])
def test_postgresql_needs_a_driver(words, tmp_path, monkeypatch):
    run("init", tmp_path / "survey.toml", "--example")
    monkeypatch.setitem(sys.modules, "psycopg", None)
    address = "postgresql://ann@127.0.0.1:1/health"
    given = {"token": ("token", address), "serve": ("serve", "survey.toml", "--store", address)}
    said = run(*given[words], code=2, cwd=tmp_path).stderr
    assert SENTENCE.findall(said) == ["postgres"]


@pytest.mark.parametrize(
    ("module", "call", "extra"),
    [("pandas", extras.pandas, "data"), ("pyarrow", extras.pyarrow, "data"),
     ("altair", extras.altair, "plot"), ("vl_convert", extras.altair, "plot"),
     ("psycopg", extras.psycopg, "postgres"), ("httptools", extras.service, "serve"),
     ("uvicorn", extras.service, "serve"), ("msgspec", extras.service, "serve"),
     ("starlette", extras.service, "serve"), ("pyarrow", extras.service, "serve")],
)  # fmt: skip
def test_every_package_is_named(module, call, extra, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra) as refused:
        call()
    assert str(refused.value).startswith(f"'{module}' is not installed.")
    assert SENTENCE.findall(str(refused.value)) == [extra]
