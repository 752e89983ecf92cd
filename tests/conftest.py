"""Settings of all tests: where kernels run, poisoned memory, the cases of the thin suite, and the order of tests."""

from __future__ import annotations

import functools
import gc
import logging
import os
import signal
import sys
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.devices import HAS_CUDA, HAS_TORCH

# Triton reads this variable when it is first imported; after that, its kernels are interpreted.
if HAS_TORCH and not HAS_CUDA:
    os.environ["TRITON_INTERPRET"] = "1"

# Otherwise the first use of JAX takes three quarters of the GPU's memory, which other processes of the run need.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

from tests.helpers import durations, interpreter, limit, poison
from tests.helpers.kernels import planned_search, ways
from tests.helpers.thinning import mark_beyond_pairs
from tonari.core.process.caches import empty_caches
from tonari.core.results.neighbors import Neighbors
from tonari.methods.places import value_range
from tonari.metrics import METRICS

if HAS_TORCH and not HAS_CUDA:
    interpreter.hasten()


# Folders whose answers are compared bit for bit up to the limits of their dtypes and beyond, where public functions
# refuse to answer.
TESTS = Path(__file__).parent
BELOW_REFUSALS = ("bits", "cuda", "exact", "kdtree", "metrics", "nn_descent")


@pytest.fixture
def beyond_range(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let values that overflow or underflow their dtype be answered, in the order of the rows."""
    monkeypatch.setattr(value_range, "_look_closer", lambda *_given: None)


@pytest.fixture(autouse=True)
def _engines_answer_beyond_the_range(request: pytest.FixtureRequest) -> None:
    if is_below_refusals(request.path):
        request.getfixturevalue("beyond_range")


@functools.cache  # paths are compared once for each file
def is_below_refusals(path: Path) -> bool:
    """Return whether a test file is in a folder of `BELOW_REFUSALS`."""
    return any(path.is_relative_to(TESTS / room) for room in BELOW_REFUSALS)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test with `metric` and `screens` every metric at all precisions; with only `screens`, those of L2."""
    if {"metric", "screens"} <= set(metafunc.fixturenames):
        pairs = [(metric, screens) for metric in METRICS for screens in ways(metric)]
        metafunc.parametrize(
            ("metric", "screens"),
            pairs,
            ids=[f"{metric}-{isa}-{'+'.join(precisions)}" for metric, (isa, precisions) in pairs],
        )
    elif "screens" in metafunc.fixturenames:  # the product form, which has the most kernels
        pairs = ways("euclidean")
        metafunc.parametrize("screens", pairs, ids=[f"{isa}-{'+'.join(precisions)}" for isa, precisions in pairs])


@pytest.fixture(autouse=HAS_CUDA)
def _memory_of_the_card_is_given_back() -> Iterator[None]:
    """Return cached memory to the GPU: several processes share it, and memory cached by one is lost to the others."""
    yield
    import torch

    torch.cuda.empty_cache()


@pytest.fixture(autouse=HAS_CUDA)
def _no_rehearsal_fails(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Make a failed compilation in advance an error; a search would continue without it."""
    yield
    warned = [record.getMessage() for record in caplog.get_records("call") if "compiled ahead" in record.getMessage()]
    assert not warned


@pytest.fixture(autouse=True)
def _caches_are_empty() -> None:
    """Empty all caches: a test may replace functions on which cached plans and decisions depend."""
    empty_caches()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--brief", action="store_true", help="one case of each test")
    parser.addoption(
        "--record-durations", action="store_true", help="write to tests/durations.json how long each test file takes"
    )
    parser.addoption("--max-seconds", type=float, help="seconds after which no further test starts")


def pytest_configure(config: pytest.Config) -> None:
    durations.configure(config)
    limit.configure(config)


def on_the_host(item: pytest.Item) -> bool:
    """Return whether a test has a parameter `device` that names the host."""
    return getattr(item, "callspec", None) is not None and item.callspec.params.get("device") == "cpu"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests of CUDA code by the device that runs it, and the cases that belong only to the full suite."""
    if HAS_TORCH:
        for item in items:
            if "cuda" in item.nodeid.split("::")[0] and not (HAS_CUDA and on_the_host(item)):
                item.add_marker("gpu" if HAS_CUDA else "interpreter")
    mark_beyond_pairs(items)
    if config.getoption("--brief"):
        first = {item.nodeid.partition("[")[0]: item for item in reversed(items) if not item.get_closest_marker("full")}
        items[:] = [item for item in items if first.get(item.nodeid.partition("[")[0]) is item]
    if hasattr(config, "workerinput"):  # one of several processes
        if config.getoption("--max-seconds") is None:
            durations.longest_first(items, durations.recorded())
        else:
            limit.in_drawn_order(items, config.workerinput["testrunuid"])


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    """Stop Python's garbage collector, which would look again and again through a growing number of tests."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Hide the many thousand collected tests from Python's garbage collector."""
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True, scope="module")
def _torch_passes_its_messages_on() -> None:
    """Let PyTorch's loggers, which each module may add to, pass their messages on to the root logger.

    Around each step of each test, pytest adds handlers to every logger that does not, and PyTorch has dozens of these.
    """
    for name, logger in logging.root.manager.loggerDict.items():
        if name.partition(".")[0] == "torch" and isinstance(logger, logging.Logger):
            logger.propagate = True


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """Clear the overloads that typing has registered, so that native objects of the tests are freed at exit.

    PyTorch keeps functions alive after the interpreter ends. A function that uses typing keeps the registry of
    overloads alive (Python 3.11 and later). This registry contains functions of Hypothesis, whose modules were loaded
    by pytest's import hook. The hook keeps the session alive, and the session every parameter of a test. Native objects
    among these parameters would still exist when nanobind counts leaks.
    """
    if sys.version_info >= (3, 11):
        typing.clear_overloads()
    # A process of pytest-xdist keeps the configuration, with all plugins, after the interpreter ends.
    session = config.pluginmanager.unregister(name="session")
    if isinstance(session, pytest.Session):
        for item in session.items:
            vars(item).clear()
        session.items.clear()
    config.pluginmanager.unregister(name="funcmanage")
    gc.unfreeze()
    gc.collect()


@pytest.fixture(autouse=True, scope="session")
def _interrupts_are_heard() -> None:
    """Ctrl-C is not ignored, as it is in what a shell runs in the background; programs that tests start inherit that.

    Restoring it in a child process before its program starts would need a fork, and libraries with threads warn of
    forks.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="session")
def _memory_is_poisoned() -> Iterator[None]:
    """Fill the uninitialized arrays and tensors of tonari with NaN or sentinels instead of accidental zeros."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        poison.poison(monkeypatch)
        yield


@pytest.fixture
def by_plan() -> Callable[..., Neighbors]:
    return planned_search


@pytest.fixture
def cpu_for_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the CPU act as the device "cuda" if there is none: torch tensors are on the device, arrays are not."""
    if HAS_CUDA:
        return
    import torch

    from tonari import inputs
    from tonari.cuda import memory
    from tonari.inputs.arrays import device_rows

    places, devices = inputs.place_of, inputs.devices_for

    def place_of(x: Any, name: str) -> str | None:
        return "cpu" if isinstance(x, torch.Tensor) else places(x, name)

    def devices_for(device: Any, **given: Any) -> tuple[str, ...]:
        there = device == "cuda" or "cpu" in {place_of(x, name) for name, x in given.items()}
        return ("cpu",) if there else devices(device, **given)

    for module in (inputs, device_rows):
        monkeypatch.setattr(module, "place_of", place_of)
    monkeypatch.setattr(inputs, "devices_for", devices_for)
    monkeypatch.setattr(memory, "free_memory", lambda devices: 4 * 10**9)
