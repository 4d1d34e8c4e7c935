"""Nothing on the way from a value to its report uses floats, seeds or another source of
randomness."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import deniable
import deniable as dn

SOURCE = Path(deniable.__file__).parent
PATH = [
    SOURCE / "randomness.py",
    SOURCE / "device" / "memo.py",
    SOURCE / "protocols" / "thresh" / "device.py",
    *(SOURCE / "collection" / f"{name}.py" for name in ("bulk", "client", "reporting", "wire")),
    *(SOURCE / "engines" / name for name in ("privatising.py", "spark/frames.py")),
    *sorted((SOURCE / "mechanisms").rglob("*.py")),
    *(path for path in sorted((SOURCE / "kernels").glob("*.py")) if path.stem != "columns"),
]
#: Works on reports that were made long ago, in floating point.
DECODING = SOURCE / "kernels" / "likelihood.py"
DEVICE_METHODS = {
    *("report", "fill", "of", "_one_by_one", "report_each", "below", "choice", "pick"),
    *("randomised", "fill_rows", "_randomised", "_fill_inner", "fill_hashed", "ask", "flip"),
    *("begin", "key", "memoise", "instant", "permanent_row", "reported_row", "_step", "_steps"),
    *("begin_all", "keys_of", "memoise_all", "instant_all", "_asked_rows", "_yes_rows"),
    *("cells_of", "_code", "codes", "keys", "columns", "mixed", "mixed_all", "permuted"),
    *("clamped_laplace", "vote", "estimate", "_wants_update"),
    *("recall_begun", "recall_kept", "_coins", "has_bit", "report_always", "always"),
    *("row_coins", "encoded", "write", "_column", "_of"),
    *("asks", "cell", "seen", "rounded", "rounded_column"),
    *("_made", "_draw", "respond", "row", "_batch", "_drawn", "randomise", "_in_bulk"),
}
PRIVATISING = {
    "cohorts": ("cohort_cells",),
    "bits": (
        "_compare_digits",
        "_settle",
        "_bernoulli",
        "_place",
        "_place_in_word",
        "_mask_last_word",
    ),
    "direct": ("keep_or_draw", "keep_or_flip"),
    "hadamard": ("hadamard_responses", "hadamard_signs"),
    "hashing": ("hashed_reports",),
    "histogram": ("_draw", "_settle_draws", "_mirror"),
    "sets": ("pick_items", "_select", "_ask"),
    "subset": ("_sprinkle", "row_sizes", "_resize", "_floyd"),
}


def functions(path):
    kernel_file = path.parent.name == "kernels"
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef) and (kernel_file or node.name in DEVICE_METHODS):
            yield node


@pytest.mark.parametrize("path", sorted({*PATH} - {DECODING}), ids=lambda path: path.stem)
def test_no_floats_where_a_report_is_made(path):
    for function in functions(path):
        for node in ast.walk(function):
            where = f"{path.name}:{getattr(node, 'lineno', '?')} in {function.name}"
            assert not isinstance(node, ast.Div), f"true division: {where}"
            is_float = isinstance(node, ast.Constant) and isinstance(node.value, float)
            assert not is_float, f"float constant: {where}"
            names = {getattr(node, "id", None), getattr(node, "attr", None)}
            assert not names & {"float", "float64", "float32", "math", "exp", "log"}, where


@pytest.mark.parametrize("path", PATH, ids=lambda path: path.stem)
def test_no_other_randomness(path):
    tree = ast.parse(path.read_text())
    guarded = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    guarded |= {  # the one place that recognises a caller's generator
        id(node.value)
        for node in ast.walk(tree)
        if path.name == "randomness.py" and getattr(node, "attr", "") == "Generator"
    }
    for node in ast.walk(tree):
        if id(node) in guarded:
            continue
        if isinstance(node, ast.Import):
            assert not {alias.name for alias in node.names} & {"random", "secrets", "numpy.random"}
        if isinstance(node, ast.ImportFrom):
            assert node.module not in {"random", "secrets", "numpy.random"}
        if isinstance(node, ast.Attribute):
            assert node.attr != "random", f"{path.name}:{node.lineno}"


@pytest.mark.parametrize("optional", [False, True])
def test_nodes_of_a_tree_are_integers_in_bulk(optional):
    """NumPy makes floats of signed and unsigned integers, without any in the source."""
    m = dn.HH(dn.Number(0, 1, optional=optional), 1.0, bins=5, fan_out=3)
    values = np.array(m.domain.sample(), dtype=m.domain.dtype)
    for place in range(m.places):
        nodes = m.seen(place, values)
        assert nodes.dtype == np.uint64
        assert nodes.tolist() == [m.seen(place, value) for value in values.tolist()]


def test_the_guard_sees_a_planted_float(tmp_path):
    bad = tmp_path / "direct.py"
    bad.write_text("def report(self, value, coins):\n    return coins.below(0.5 * 2**64)\n")
    with pytest.raises(AssertionError, match="float constant"):
        test_no_floats_where_a_report_is_made(bad)


INSPECT = f"""
import importlib
import numpy as np
import deniable as dn
from deniable.conformance import large, reports_of, small
for family in dn.mechanisms().values():
    for m in (*small(family), *large(family)):
        reports_of(m, m.domain.sample(), 100, 1)
for module, kernels in {PRIVATISING}.items():
    home = importlib.import_module("deniable.kernels." + module)
    for kernel in kernels:
        codes = getattr(home, kernel).inspect_llvm().values()
        floats = [word for code in codes for word in ("double", " float ") if word in code]
        print(kernel, len(codes) > 0 and not floats)
"""


@pytest.mark.slow
def test_compiled_kernels_hold_no_floating_point(tmp_path):
    """Cached machine code cannot be inspected, so a process without a cache compiles it anew."""
    result = subprocess.run(
        [sys.executable, "-c", INSPECT],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    verdicts = dict(line.split() for line in result.stdout.splitlines())
    assert set(verdicts) == {kernel for kernels in PRIVATISING.values() for kernel in kernels}
    assert set(verdicts.values()) == {"True"}, verdicts


def test_a_kernel_without_randomness_stops_everything(monkeypatch):
    def broken(count):
        raise OSError("no entropy")

    monkeypatch.setattr(os, "urandom", broken)
    for n in (1, 1000):
        with pytest.raises(OSError, match="no entropy"):
            dn.GRR(4, 1.0).privatize([0] * n)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("n", [5, 5000])
def test_a_forked_process_draws_other_coins(n):
    m = dn.GRR(200, 1.0)
    m.privatize([0] * n)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, m.privatize([0] * n).data.tobytes())
        finally:
            os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    with os.fdopen(read, "rb") as pipe:
        theirs = pipe.read()
    assert len(theirs) == n
    assert theirs != m.privatize([0] * n).data.tobytes()
