"""Inner loops compiled by Numba, on machines where little can be written as well.

Numba keeps what it compiled beside the source or in the user's home. Where both are read-only it raises
instead of compiling; then a folder of this user alone, under the system's temporary one, keeps it, and
where there is none either, every process compiles for itself. The folder must be ours and closed to
others, for what is read from it is run.

A `kernel` is compiled by Numba too, but the machine code is kept in files of our own and loaded by
llvmlite alone: to import Numba and to make it ready takes longer than many a command. Its arguments are
arrays and numbers, and it does not allocate. Only a whole file that this user or root wrote is run; any
other is compiled anew. Where Numba or llvmlite are not as this needs them, `compiled` takes its place.
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
from typing import Any, cast

import numpy as np

from understudy import files

_memory: Any = ctypes.c_char.from_buffer
_RESULTS = {"int64": ctypes.c_int64, "float64": ctypes.c_double, "none": ctypes.c_void_p}


def compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """The function as machine code, made at its first call and kept on disk if that can be."""
    import numba
    from numba.core import config as settings

    with suppress(RuntimeError):
        return numba.njit(cache=True, **options)(function)
    folder, config = _temporary(), cast(Any, settings)
    if folder is not None:
        before, config.CACHE_DIR = config.CACHE_DIR, str(folder)
        try:
            with suppress(RuntimeError):
                return numba.njit(cache=True, **options)(function)
        finally:
            config.CACHE_DIR = before
    return numba.njit(**options)(function)


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

Kinds = tuple[tuple[Any, int], ...]
"""Of every argument: its type for NumPy, and dimensions, 0 for a number."""

_KERNELS: dict[str, dict[str, Callable[..., Any]]] = {}
"""The functions behind the kernels of each module, which may call one another."""


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as machine code, made for the types of a call; no Numba where it is kept.

    It is told where an array lies and its sizes; arrays that are not in order are Numba's to take.
    Profiles and traces show the call under the name and in the file of the kernel.
    """
    made: dict[Kinds, tuple[Any, Any] | None] = {}
    _KERNELS.setdefault(function.__module__, {})[function.__name__] = function

    @functools.wraps(function)
    def run(*arguments: Any) -> Any:
        kinds: list[tuple[Any, int]] = []
        values: list[Any] = []
        for value in arguments:
            if not isinstance(value, np.ndarray):
                kinds.append(("d" if isinstance(value, float) else "q", 0))
                values.append(value)
                continue
            if value.flags.carray:  # faster than NumPy's own word for where it is
                where = ctypes.addressof(_memory(value)) if value.size else None
            elif value.flags.c_contiguous and value.flags.aligned:
                where = value.__array_interface__["data"][0]
            else:
                return _ordinary(function)(*arguments)
            kinds.append((value.dtype, value.ndim))
            values += (where, *value.shape)
        key = tuple(kinds)
        if key not in made:
            made[key] = _native(function, key)
        native = made[key]
        if native is None:
            return _ordinary(function)(*arguments)
        entry, result = native
        given, error = result(), ctypes.c_void_p()
        if entry(ctypes.addressof(given), ctypes.addressof(error), *values):
            raise RuntimeError(f"{function.__name__} failed")
        return given.value

    assert isinstance(run, FunctionType)
    assert isinstance(function, FunctionType)
    own = function.__code__
    run.__code__ = run.__code__.replace(co_filename=own.co_filename, co_name=own.co_name)
    return run


def _native(function: Callable[..., Any], kinds: Kinds) -> tuple[Any, Any] | None:
    """The machine code as ctypes calls it and the type of its result; None where that cannot be."""
    parts: list[Any] = [ctypes.c_void_p, ctypes.c_void_p]
    for name, dimensions in kinds:
        if dimensions:
            parts += [ctypes.c_void_p] + [ctypes.c_ssize_t] * dimensions
        else:
            parts.append(ctypes.c_double if name == "d" else ctypes.c_int64)
    try:
        head, _, code = _kept(function, kinds).partition(b"\n")
        symbol, result = json.loads(head)
        entry = ctypes.CFUNCTYPE(ctypes.c_int32, *parts)(_linked(code, symbol))
        return entry, _RESULTS[result]
    except Exception:  # noqa: BLE001  (Numba has errors of its own; the ordinary way will tell)
        return None


@functools.cache
def _ordinary(function: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel as Numba compiles and calls it."""
    return compiled(_calling(function, _ordinary), error_model="numpy")


def _calling(function: Callable[..., Any], make: Callable[..., Any]) -> FunctionType:
    """The function, which calls what `make` makes of the kernels it names."""
    assert isinstance(function, FunctionType)
    kernels = _KERNELS.get(function.__module__, {})
    names = {name: make(kernels[name]) for name in function.__code__.co_names if name in kernels}
    return FunctionType(function.__code__, {**function.__globals__, **names}, function.__name__)


@functools.cache
def _machine() -> tuple[Any, str]:
    """(llvmlite's binding, what of this machine the code depends on)."""
    import llvmlite
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    features = binding.get_host_cpu_features().flatten()
    machine = f"{binding.get_default_triple()} {binding.get_host_cpu_name()} {features}"
    return binding, f"{llvmlite.__version__} {machine}"


_LIBRARIES: list[Any] = []  # What holds the machine code in memory


def _linked(code: bytes, symbol: str) -> int:
    """The address of the function in this machine code; RuntimeError where anything is missing."""
    binding: Any = _machine()[0]
    linker = binding.create_lljit_compiler(suppress_errors=True)
    builder = binding.JITLibraryBuilder().add_object_img(code).add_current_process()
    library = builder.export_symbol(symbol).link(linker, "kernel")
    _LIBRARIES.append((library, linker))
    return int(library[symbol])


def _kept(function: Callable[..., Any], kinds: Kinds) -> bytes:
    """A line of what is known of the code, and the code; compiled where it is not kept."""
    source, key = Path(inspect.getfile(function)), _key(function, kinds)
    name = f"{source.stem}.{function.__name__}-{key[:32]}.o"
    for folder in _folders(source):
        with suppress(OSError):
            seal, _, kept = _trusted(folder / name).partition(b" ")
            if seal == _seal(key, kept):
                return kept
    made = _compile(function, kinds)
    for folder in _folders(source):
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name).unlink(missing_ok=True)  # its mode may be why it was not used
            files.write(folder / name, _seal(key, made) + b" " + made, mode=0o644)
            break
    return made


def _key(function: Callable[..., Any], kinds: Kinds) -> str:
    """The digest of all that the machine code depends on."""
    texts = [_text(Path(file)) for file in (inspect.getfile(function), __file__)]
    facts = [function.__qualname__, kinds, _machine()[1], *texts]
    return hashlib.sha256(json.dumps(facts, default=str).encode()).hexdigest()


def _seal(key: str, content: bytes) -> bytes:
    """The digest that a file begins with: it is whole, and of this kernel."""
    return hashlib.sha256(key.encode() + content).hexdigest().encode()


def _trusted(path: Path) -> bytes:
    """The content of a file that nobody but this user and root can have written; else of none."""
    with path.open("rb") as file:
        about = os.fstat(file.fileno())
        trusted = about.st_uid in (0, os.getuid()) and not about.st_mode & 0o022
        return file.read() if trusted else b""


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
    from numba.np.arrayobj import get_cfarray_intrinsic

    # No exceptions, no counting of references, nothing for Python to call.
    options: dict[str, Any] = {"error_model": "numpy", "_nrt": False}
    bare: dict[str, Any] = {**options, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}

    def inner(each: Callable[..., Any]) -> Any:
        return numba.njit(**options)(_calling(each, inner))

    signature: list[Any] = []
    taken: list[str] = []
    given: list[str] = []
    for at, (name, dimensions) in enumerate(kinds):
        number: Any = numba.from_dtype(np.dtype(name))
        sizes = [f"n{at}_{axis}" for axis in range(dimensions)]
        signature += [types.CPointer(number), *[types.intp] * dimensions] if sizes else [number]
        taken += [f"a{at}", *sizes]
        given.append(f"array(a{at}, ({', '.join(sizes)},))" if sizes else f"a{at}")
    scope: dict[str, Any] = {"array": get_cfarray_intrinsic("C", None), "inner": inner(function)}
    exec(f"def entry({', '.join(taken)}): return inner({', '.join(given)})", scope)
    made: Any = numba.njit(**bare)(scope["entry"])
    made.compile(tuple(signature))
    (result,) = made.overloads.values()
    about = [result.fndesc.llvm_func_name, str(result.signature.return_type)]
    code = result.library._get_compiled_object()
    if any(name in code for name in (b"NRT_", b"numba_", b"__svml")):
        raise RuntimeError(f"{function.__name__} needs Numba to run")
    return json.dumps(about).encode() + b"\n" + code
