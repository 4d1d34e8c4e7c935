"""The public surface."""

import ast
from pathlib import Path

import pytest

import deniable

SOURCE = Path(deniable.__file__).parent


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


def test_mechanisms_are_a_package_and_a_list():
    assert deniable.mechanisms()["oue"] is deniable.OUE
    from deniable.mechanisms import OUE

    assert OUE is deniable.OUE


def test_names_are_found_in_any_case_and_unique():
    assert deniable.mechanism("OUE", 4, 1.0) == deniable.OUE(4, 1.0)

    class Impostor(deniable.GRR):
        pass

    with pytest.raises(ValueError, match="has it already"):
        deniable.register(Impostor)
