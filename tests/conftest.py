"""What every test shares."""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Generator
from typing import Any

# A worker for each core: threads of linear algebra would only wait for each other, and that busily.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import pytest
from hypothesis import HealthCheck, settings

from tests import fixed_noise, quick, thorough
from tests.tools import both

_MEMORY, _ENOUGH = "/dev/shm", 8 * 2**30


def write_to_memory() -> None:
    """Every charge is durable before its draw: on a disk, tests of releases mostly wait for it."""
    if (
        "TMPDIR" not in os.environ
        and os.access(_MEMORY, os.W_OK | os.X_OK)
        and shutil.disk_usage(_MEMORY).free > _ENOUGH
    ):
        os.environ["TMPDIR"], tempfile.tempdir = _MEMORY, None


write_to_memory()
both.install()
fixed_noise.install()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--thorough", action="store_true", help="all examples and repetitions")
    parser.addoption("--quick", action="store_true", help="first cases, and no long tests")
    parser.addoption("--write-long", action="store_true", help="write tests/long.txt anew")


def pytest_configure(config: pytest.Config) -> None:
    """Before any test file is read: numbers of examples stand in decorators.

    Networks here are tiny, and XLA takes longer to make their programs fast than these run; what it
    has compiled is kept for the other worker, processes that tests start, and the next time.
    """
    thorough.ask(config.getoption("--thorough"))
    # The first example pays for imports and busy machines: what property tests judge is never the
    # time. `make test` tries the same examples again and again, `make test-all` others each time.
    settings.register_profile(
        "ours",
        deadline=None,
        max_examples=thorough.examples(20, 100),
        derandomize=not config.getoption("--thorough"),
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("ours")
    if config.getoption("--quick"):
        config.pluginmanager.register(quick.Quick())
    if config.getoption("--write-long"):
        config.pluginmanager.register(quick.Stopwatch())
    os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(config.rootpath / ".pytest_cache/jax"))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
    # What a killed process has left half written is compiled again.
    config.addinivalue_line("filterwarnings", "ignore:Error .* persistent compilation cache")
    # A suite in the background of a shell is started with Ctrl-C ignored, and would hand that on to the
    # processes that tests interrupt.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that fork come first: a process must not fork once JAX has started its threads."""
    items.sort(key=lambda item: item.get_closest_marker("forks") is None)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """Ten thousand tests and what they import stay to the end: nobody looks for garbage among them."""
    gc.disable()
    atexit.register(gc.unfreeze)  # bindings that look for leaks may see them then
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Noise is fixed by the name of the test, unless the real noise is what it is about."""
    real = item.get_closest_marker("real_noise") is not None
    before = fixed_noise.begin(None if real else item.nodeid)
    try:
        return (yield)
    finally:
        fixed_noise.resume(before)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> Generator[None, Any, Any]:
    """What several tests share does not depend on which of them comes first."""
    if fixturedef.scope == "function":
        return (yield)
    before = fixed_noise.begin(f"{fixturedef.baseid} {fixturedef.argname} {request.param_index}")
    try:
        return (yield)
    finally:
        fixed_noise.resume(before)
