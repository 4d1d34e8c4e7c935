"""Every law on every registered mechanism."""

import pytest

import deniable as dn
from deniable.conformance import LAWS


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("name", dn.mechanisms())
def test_law(name, law):
    law(dn.mechanisms()[name])
