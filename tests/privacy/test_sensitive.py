"""A sealed value shows nothing of itself, whatever Python does to it."""

import copy
import json
import logging
import math
import operator
import pickle
import traceback

import numpy as np
import pytest

from understudy.errors import PrivacyError, SensitiveError
from understudy.privacy.sensitive import Sensitive, reveal

SECRET = 4815162342
SEALED = "<Sensitive>"

VALUES = [
    SECRET,
    float(SECRET),
    str(SECRET),
    [SECRET],
    {"rows": SECRET},
    (np.array([SECRET, 1]),),
    np.array([[SECRET, 2]]),
    None,
]


def identity(value):
    return f"{type(value).__name__}"


@pytest.mark.parametrize("value", VALUES, ids=identity)
def test_reveal_opens(value):
    assert reveal(Sensitive(value)) is value


@pytest.mark.parametrize("value", VALUES, ids=identity)
def test_repr_and_str_show_nothing(value):
    sealed = Sensitive(value)
    assert repr(sealed) == SEALED
    assert str(sealed) == SEALED
    assert f"{sealed!r} {sealed!s}" == f"{SEALED} {SEALED}"
    assert "%s" % sealed == SEALED  # noqa: UP031
    assert repr([sealed, {"k": sealed}]) == f"[{SEALED}, {{'k': {SEALED}}}]"


@pytest.mark.parametrize("spec", ["", ".2f", "d", "s", ">20", "x", "e", ","])
def test_format_shows_nothing(spec):
    try:
        text = format(Sensitive(SECRET), spec)
    except SensitiveError as error:
        text = str(error)
    assert str(SECRET) not in text
    assert text == SEALED or "4815" not in text


LOOKS = {
    "eq": lambda s: s == s,
    "eq value": lambda s: s == SECRET,
    "eq reflected": lambda s: SECRET == s,  # noqa: SIM300
    "ne": lambda s: s != SECRET,
    "lt": lambda s: s < 1,
    "le": lambda s: s <= 1,
    "gt": lambda s: s > 1,
    "ge": lambda s: s >= 1,
    "hash": hash,
    "set": lambda s: {s},
    "dict key": lambda s: {s: 1},
    "bool": bool,
    "not": lambda s: not s,
    "if": lambda s: 1 if s else 2,
    "and": lambda s: s and 1,
    "int": int,
    "float": float,
    "complex": complex,
    "bytes": bytes,
    "round": round,
    "trunc": math.trunc,
    "floor": math.floor,
    "ceil": math.ceil,
    "len": len,
    "iter": iter,
    "list": list,
    "unpack": lambda s: [*s],
    "reversed": reversed,
    "next": next,
    "in": lambda s: 1 in s,
    "index": operator.index,
    "range": range,
    "as subscript": lambda s: [1, 2][s],
    "getitem": lambda s: s[0],
    "slice": lambda s: s[:1],
    "setitem": lambda s: operator.setitem(s, 0, 1),
    "delitem": lambda s: operator.delitem(s, 0),
    "call": lambda s: s(),
    "attribute": lambda s: s.value,
    "private attribute": lambda s: s._value,
    "shape": lambda s: s.shape,
    "numpy item": lambda s: s.item(),
    "getattr default": lambda s: getattr(s, "value", None),
    "hasattr": lambda s: hasattr(s, "tolist"),
    "add": lambda s: s + 1,
    "radd": lambda s: 1 + s,
    "sub": lambda s: s - 1,
    "rsub": lambda s: 1 - s,
    "mul": lambda s: s * 2,
    "rmul": lambda s: 2 * s,
    "truediv": lambda s: s / 2,
    "rtruediv": lambda s: 2 / s,
    "floordiv": lambda s: s // 2,
    "mod": lambda s: s % 2,
    "divmod": lambda s: divmod(s, 2),
    "pow": lambda s: s**2,
    "rpow": lambda s: 2**s,
    "matmul": lambda s: s @ s,
    "and bits": lambda s: s & 1,
    "or bits": lambda s: s | 1,
    "xor": lambda s: s ^ 1,
    "lshift": lambda s: s << 1,
    "rshift": lambda s: s >> 1,
    "iadd": lambda s: operator.iadd(s, 1),
    "neg": operator.neg,
    "pos": operator.pos,
    "abs": abs,
    "invert": operator.invert,
    "sum": lambda s: sum([s]),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "deepcopy inside": lambda s: copy.deepcopy({"a": [s]}),
    "asarray": np.asarray,
    "array copy": lambda s: np.array(s, copy=True),
    "asarray dtype": lambda s: np.asarray(s, dtype=np.int64),
    **{
        f"pickle {protocol}": lambda s, protocol=protocol: pickle.dumps(s, protocol)
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
    },
    "pickle inside": lambda s: pickle.dumps({"a": [s]}),
}


@pytest.mark.parametrize("value", [SECRET, np.array([SECRET])], ids=["int", "array"])
@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_every_look_is_refused(look, value):
    with pytest.raises(SensitiveError) as caught:
        look(Sensitive(value))
    assert str(SECRET) not in "".join(traceback.format_exception(caught.value))


FOREIGN = {
    "json": json.dumps,
    "json inside": lambda s: json.dumps({"rows": s}),
    "vars": vars,
    "ufunc": lambda s: np.add(s, 1),
    "ufunc right": lambda s: np.arange(3) + s,
    "np.sum": np.sum,
    "np.max": np.max,
    "float array item": lambda s: np.zeros(2).__setitem__(0, s),
    "isnan": math.isnan,
    "percent d": lambda s: "%d" % s,  # noqa: UP031
    "chr": chr,
    "memoryview": memoryview,
    "join": lambda s: ",".join([s]),
}


@pytest.mark.parametrize("value", [SECRET, np.array([SECRET])], ids=["int", "array"])
@pytest.mark.parametrize("look", FOREIGN.values(), ids=FOREIGN)
def test_libraries_cannot_look_either(look, value):
    """Some of these raise their own error before asking the value; none may show it."""
    with pytest.raises((TypeError, ValueError)) as caught:
        look(Sensitive(value))
    assert str(SECRET) not in "".join(traceback.format_exception(caught.value))


def test_logging_shows_nothing(caplog):
    with caplog.at_level(logging.INFO):
        logging.getLogger("t").info("rows %s %r", Sensitive(SECRET), Sensitive(SECRET))
    assert caplog.messages == [f"rows {SEALED} {SEALED}"]


def test_arrays_of_objects_stay_sealed():
    holder = np.empty(1, dtype=object)
    holder[0] = Sensitive(SECRET)
    assert "4815" not in repr(holder)


def test_it_is_a_privacy_error_and_a_type_error():
    with pytest.raises(PrivacyError):
        bool(Sensitive(1))
    with pytest.raises(TypeError):
        bool(Sensitive(1))


def test_identity_and_type_remain_visible():
    sealed = Sensitive(SECRET)
    assert sealed is sealed
    assert isinstance(sealed, Sensitive)
    assert not isinstance(sealed, int)
