"""Inner loops compiled by Numba, on machines where little can be written as well.

Numba keeps what it compiled beside the source or in the user's home. Where both are read-only it raises
instead of compiling; then a folder of this user alone, under the system's temporary one, keeps it, and
where there is none either, every process compiles for itself. The folder must be ours and closed to
others, for what is read from it is run.

A `kernel` is compiled by Numba too, but the machine code is kept in the same places by ourselves and
loaded by llvmlite alone: to import Numba and to make it ready takes longer than many a command. Its
arguments are arrays and numbers, and it neither allocates nor slices.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import inspect
import json
import os
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

from understudy import files

__all__ = ["compiled", "kernel"]

_RESULTS = {"int64": ctypes.c_int64, "float64": ctypes.c_double}


def compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """The function as machine code, made at its first call and kept on disk if that can be."""
    import numba

    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:
        return _elsewhere(function, options)


def _elsewhere(function: Callable[..., Any], options: dict[str, Any]) -> Callable[..., Any]:
    import numba
    from numba.core import config as settings

    folder = _temporary()
    if folder is None:
        return numba.njit(**options)(function)
    config: Any = settings
    before, config.CACHE_DIR = config.CACHE_DIR, str(folder)
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:
        return numba.njit(**options)(function)
    finally:
        config.CACHE_DIR = before


def _temporary() -> Path | None:
    """A folder that this user owns and nobody else may enter; None where there is none."""
    try:
        folder = Path(tempfile.gettempdir()) / f"understudy-numba-{os.getuid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        kept = folder.lstat()
    except OSError:
        return None
    ours = stat.S_ISDIR(kept.st_mode) and kept.st_uid == os.getuid()
    return folder if ours and not kept.st_mode & 0o077 else None


# --- kernels -------------------------------------------------------------------------------------

Kinds = tuple[tuple[str, int, str], ...]
"""Of every argument: NumPy's letter of its type, dimensions, 0 for a number, and order in memory."""

_KERNELS: dict[str, dict[str, Callable[..., Any]]] = {}
"""The functions behind the kernels of each module, which may call one another."""


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as machine code, made for the types of a call; no Numba where it is kept.

    It is called as Numba calls it, with the parts of an array one by one. Profiles and traces show
    the call under the name and in the file of the kernel.
    """
    made: dict[Kinds, tuple[Any, Any]] = {}
    _KERNELS.setdefault(function.__module__, {})[function.__name__] = function

    @functools.wraps(function)
    def run(*arguments: Any) -> Any:
        kinds: list[tuple[str, int, str]] = []
        values: list[Any] = []
        for value in arguments:
            if isinstance(value, np.ndarray):
                order = "C" if value.flags.c_contiguous else "A"
                kinds.append((value.dtype.char, value.ndim, order))
                where = value.__array_interface__["data"][0]
                values += (None, None, value.size, value.itemsize, where)
                values += (*value.shape, *value.strides)
            else:
                kinds.append(("d" if isinstance(value, float) else "q", 0, ""))
                values.append(value)
        key = tuple(kinds)
        if key not in made:
            made[key] = _native(function, key)
        entry, result = made[key]
        given, error = result(), ctypes.c_void_p()
        if entry(ctypes.addressof(given), ctypes.addressof(error), *values):
            raise RuntimeError(f"{function.__name__} failed")
        return given.value

    assert isinstance(run, FunctionType)
    assert isinstance(function, FunctionType)
    own = function.__code__
    run.__code__ = run.__code__.replace(co_filename=own.co_filename, co_name=own.co_name)
    return run


def _native(function: Callable[..., Any], kinds: Kinds) -> tuple[Any, Any]:
    """The machine code as ctypes calls it, and the type of its result: a null pointer for None."""
    head, _, code = _kept(function, kinds).partition(b"\n")
    about = json.loads(head)
    parts: list[Any] = [ctypes.c_void_p, ctypes.c_void_p]
    for name, dimensions, _ in kinds:
        if dimensions:
            parts += [ctypes.c_void_p] * 2 + [ctypes.c_ssize_t] * 2
            parts += [ctypes.c_void_p] + [ctypes.c_ssize_t] * (2 * dimensions)
        else:
            parts.append(ctypes.c_double if name == "d" else ctypes.c_int64)
    entry = ctypes.CFUNCTYPE(ctypes.c_int32, *parts)(_linked(code, about["symbol"]))
    return entry, _RESULTS.get(about["result"], ctypes.c_void_p)


_ENGINES: list[Any] = []
"""What holds the machine code in memory."""


@functools.cache
def _machine() -> tuple[Any, str]:
    """(llvmlite's binding, what of this machine the code depends on)."""
    import llvmlite
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    features = binding.get_host_cpu_features().flatten()
    return binding, f"{llvmlite.__version__} {binding.get_host_cpu_name()} {features}"


def _linked(code: bytes, symbol: str) -> int:
    """The address of the function in this machine code."""
    binding: Any = _machine()[0]
    target = binding.Target.from_default_triple().create_target_machine()
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), target)
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _ENGINES.append(engine)
    return int(engine.get_function_address(symbol))


def _kept(function: Callable[..., Any], kinds: Kinds) -> bytes:
    """A line of what is known of the code, and the code; compiled where it is not kept."""
    source = Path(inspect.getfile(function))
    facts = [function.__qualname__, kinds, _machine()[1], _text(source)]
    digest = hashlib.sha256(json.dumps(facts).encode()).hexdigest()
    name = f"{source.stem}.{function.__name__}-{digest[:32]}.o"
    for folder in _folders(source):
        with suppress(OSError):
            return (folder / name).read_bytes()
    made = _compile(function, kinds)
    for folder in _folders(source):
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            files.write(folder / name, made)
            break
    return made


@functools.cache
def _text(source: Path) -> str:
    return source.read_text(encoding="utf-8")


def _folders(source: Path) -> Iterator[Path]:
    """Where code may be kept, the best first."""
    yield source.parent / "__pycache__"
    with suppress(RuntimeError):  # no home
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "understudy"
    folder = _temporary()
    if folder is not None:
        yield folder


def _compile(function: Callable[..., Any], kinds: Kinds) -> bytes:
    import numba
    from numba import types

    options = {"error_model": "numpy", "_nrt": False}  # no exceptions, no counting of references

    assert isinstance(function, FunctionType)
    called = set(function.__code__.co_names) & _KERNELS.get(function.__module__, {}).keys()
    inner = {name: _KERNELS[function.__module__][name] for name in called}
    names = {name: numba.njit(**options)(each) for name, each in inner.items()}
    plain = FunctionType(function.__code__, {**function.__globals__, **names}, function.__name__)
    numbers = [numba.from_dtype(np.dtype(name)) for name, _, _ in kinds]
    signature = tuple(
        types.Array(number, dimensions, order, aligned=False) if dimensions else number
        for number, (_, dimensions, order) in zip(numbers, kinds, strict=True)
    )
    options |= {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    made: Any = numba.njit(**options)(plain)
    made.compile(signature)
    (result,) = made.overloads.values()
    about = {"symbol": result.fndesc.llvm_func_name, "result": str(result.signature.return_type)}
    code = result.library._get_compiled_object()
    assert not any(name in code for name in (b"NRT_", b"numba_")), (
        "a kernel may not need Numba to run"
    )
    return json.dumps(about).encode() + b"\n" + code
