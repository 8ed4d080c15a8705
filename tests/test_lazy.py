"""Names of a package load from their modules at first use, and stay."""

import sys
from types import ModuleType

import pytest

from understudy._lazy import lazily


def test_a_name_loads_once_and_another_is_unknown(monkeypatch):
    package = ModuleType("understudy")
    monkeypatch.setitem(sys.modules, "understudy", package)
    get = lazily("understudy", {"InputError": "errors"})
    found = get("InputError")
    assert found.__name__ == "InputError"
    assert package.InputError is found
    with pytest.raises(AttributeError, match="'understudy' has no attribute 'InputErorr'"):
        get("InputErorr")
