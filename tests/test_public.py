"""The public surface, and who may import whom."""

import ast
from pathlib import Path

import pytest

import deniable

SOURCE = Path(deniable.__file__).parent
#: Rooms from left to right; each may import at load time only from those before it.
ROOMS = ["errors", "canonical", "arrays", "extras", "exports", "storage", "randomness", "splitmix",
         "texts", "populations", "privacy", "kernels", "core", "answers", "mechanisms",
         "estimation", "device", "rounds", "protocols", "collection", "ledger", "audit", "views",
         "service", "conformance", "cli"]  # fmt: skip


def test_every_public_name_is_there():
    for name in deniable.__all__:
        assert getattr(deniable, name) is not None
    assert set(deniable.__all__) <= set(dir(deniable))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        deniable.nothing  # noqa: B018


def test_type_checkers_see_the_same_names():
    tree = ast.parse((SOURCE / "__init__.py").read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    names = {alias.asname for node in block.body for alias in node.names}
    assert names == set(deniable.__all__)


def test_type_checkers_may_read_the_package():
    """Without this file they ignore all type hints (PEP 561)."""
    assert (SOURCE / "py.typed").exists()


def test_mechanisms_are_a_room_and_a_list():
    assert deniable.mechanisms()["oue"] is deniable.OUE
    from deniable.mechanisms import OUE

    assert OUE is deniable.OUE


def test_names_are_found_in_any_case_and_unique():
    assert deniable.mechanism("OUE", 4, 1.0) == deniable.OUE(4, 1.0)

    class Impostor(deniable.GRR):
        pass

    with pytest.raises(ValueError, match="has it already"):
        deniable.register(Impostor)


def imports_at_load(path):
    """Modules of ours that a file imports when it is loaded: not in functions, not for types."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("deniable."):
            yield node.module.split(".")[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE))
)
def test_reports_travel_one_way(path):
    room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    if room in ("__init__", "__main__"):
        return
    for target in imports_at_load(path):
        allowed = target == room or ROOMS.index(target) < ROOMS.index(room)
        assert allowed, f"{room} imports {target}, which lies to its right"
