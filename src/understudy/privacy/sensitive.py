"""Exact private values that cannot be looked at by accident.

A `Sensitive` seals a value computed from private rows. Anyone may seal; only `privacy/` opens
(`reveal`), and only after a durable charge. Printing shows `<Sensitive>`; comparing, iterating,
converting, copying, pickling or saving raises `SensitiveError`. A test proves that no other room
calls `reveal`.

This guards against accidents, not against malice: Python has no secrets from its own process.
"""

from __future__ import annotations

from typing import Any, Generic, NoReturn, TypeVar

from understudy.errors import SensitiveError

T = TypeVar("T")

_REMEDY = "exact private values leave only through the gate, with noise and a ledger charge"


def _refuse(operation: str) -> Any:
    def refused(self: object, *args: object, **kwargs: object) -> NoReturn:
        raise SensitiveError(f"cannot {operation} a Sensitive value: {_REMEDY}")

    return refused


class Sensitive(Generic[T]):
    """A sealed exact value. Its only use is to be handed to the gate."""

    __slots__ = ("__sealed",)

    def __init__(self, value: T) -> None:
        object.__setattr__(self, "_Sensitive__sealed", lambda: value)

    def __repr__(self) -> str:
        return "<Sensitive>"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return "<Sensitive>"

    # No comparison, no truth value: control flow may not depend on it.
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse("compare")
    __hash__ = _refuse("hash")
    __bool__ = _refuse("take the truth value of")
    __int__ = __float__ = __complex__ = __index__ = _refuse("convert")
    __round__ = __trunc__ = __floor__ = __ceil__ = _refuse("convert")
    __len__ = __iter__ = __reversed__ = __contains__ = __next__ = _refuse("iterate over")
    __getitem__ = __setitem__ = __delitem__ = _refuse("index into")
    __getattr__ = __setattr__ = __delattr__ = _refuse("read or set an attribute of")
    __call__ = _refuse("call")
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _refuse("compute with")
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = _refuse("compute with")
    __mod__ = __rmod__ = __divmod__ = __rdivmod__ = __pow__ = __rpow__ = _refuse("compute with")
    __matmul__ = __rmatmul__ = __neg__ = __pos__ = __abs__ = __invert__ = _refuse("compute with")
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = _refuse("compute with")
    __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _refuse("compute with")
    __array__ = __array_ufunc__ = __array_function__ = __buffer__ = _refuse("convert")
    __reduce__ = __reduce_ex__ = __getstate__ = _refuse("pickle or save")
    __copy__ = __deepcopy__ = _refuse("copy")
    __bytes__ = __fspath__ = _refuse("convert")
    __enter__ = __exit__ = __await__ = __aiter__ = _refuse("enter")
    __dir__ = _refuse("list the attributes of")


def reveal(sealed: Sensitive[T]) -> T:
    """Open a sealed value. Only modules of `privacy/` may call this, after the charge is durable."""
    if type(sealed) is not Sensitive:
        raise SensitiveError(f"expected a Sensitive value, got {type(sealed).__name__}")
    return object.__getattribute__(sealed, "_Sensitive__sealed")()
