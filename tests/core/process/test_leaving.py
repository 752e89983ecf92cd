"""The interpreter exits while daemon threads search: it keeps its status, prints nothing, and our threads end."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import tonari

PREPARE = """
import sys, threading, time
import numpy as np, tonari
x = np.random.default_rng(0).standard_normal((30_000, 64), dtype=np.float32)
"""

# A single call could end before the interpreter exits: see `again`.
VERBS = {
    "search on one thread": "tonari.search(x, x, 10, threads=1)",
    "search": "tonari.search(x, x, 10, threads=2)",
    "exact graph": "tonari.knn_graph(x, 10, threads=2)",
    "nn-descent": "tonari.knn_graph(np.vstack([x, x + 1]), 10, method='nn-descent', threads=2)",
    "kdtree": "tonari.knn_graph(x[:, :8].copy(), 10, method='kdtree', threads=2)",
    "select_k": "tonari.select_k(x, 10, threads=2)",
    "search_to_file": "tonari.search_to_file(x, x, 10, f'found{turn}.ibin', chunk_rows=1000)",
    "search_chunks": "list(tonari.Index(x, method='exact').search_chunks(x, 10, chunk_rows=1000))",
}


def again(verb: str) -> str:
    """Return a function that works until the interpreter exits, on a machine of any speed."""
    return f"""
def work():
    for turn in range(100_000):
        {VERBS[verb]}
    print("finished")
"""


def leave(code: str, folder: Path) -> tuple[int, str, str]:
    """Return the exit status, the output and the errors."""
    environment = os.environ | {"PYTHONPATH": str(Path(tonari.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, cwd=folder, timeout=60
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.process
@pytest.mark.parametrize("wait", [pytest.param(0.05, marks=pytest.mark.full), 0.2])
@pytest.mark.parametrize("verb", VERBS)
def test_exit_while_a_daemon_thread_is_at_work(verb: str, wait: float, tmp_path: Path) -> None:
    code = f"""{PREPARE}{again(verb)}
threading.Thread(target=work, daemon=True).start()
time.sleep({wait})
sys.exit(3)
"""
    assert leave(code, tmp_path) == (3, "", "")


@pytest.mark.process
def test_exit_with_an_index_on_a_daemon_thread(tmp_path: Path) -> None:
    code = f"""{PREPARE}
index, served = tonari.Index(x), threading.Event()
def serve():
    while True:
        index.search(x[:1], 1)
        served.set()
threading.Thread(target=serve, daemon=True).start()
served.wait()
"""
    assert leave(code, tmp_path) == (0, "", "")


@pytest.mark.process
def test_what_leaks_without_such_threads_is_still_told(tmp_path: Path) -> None:
    code = f"""{PREPARE}
import ctypes
from tonari.core import _native
ctypes.pythonapi.Py_IncRef(ctypes.py_object(_native.Form("l1", [0.0], 1.0)))
"""
    status, _, complaint = leave(code, tmp_path)
    assert (status, complaint.splitlines()[0]) == (0, "nanobind: leaked 1 instances!")


# Objects of every native class are made, and some outlive the program's last line.
EVERY_KIND = """
import gc, importlib.util, types
import numpy as np, tonari
from tonari.core.process import caches
from tonari.core import _native
makers = {name: name for name, kind in vars(_native).items() if isinstance(kind, type)} | {"tree_top": "TreeTop"}
kinds, used = set(makers.values()), set()
def noted(made, maker):
    def make(*given, **named):
        used.add(made)
        return maker(*given, **named)
    return make
for name, made in makers.items():
    setattr(_native, name, noted(made, getattr(_native, name)))
x = np.random.default_rng(0).standard_normal((8000, 40), dtype=np.float32)
low, packed = x[:, :3].copy(), (x[:3000, :16] * 40).astype(np.int8).view(np.uint8).copy()
held = [tonari.Index(x, method="exact"), tonari.Index(low, method="kdtree"), tonari.Index(packed, metric="hamming")]
for index, rows in zip(held, (x, low, packed)):
    index.search(rows[:50], 5)
    index.radius_search(rows[:50], 1.0, exclude=np.arange(50)[:, None])
    index.radius_count(rows[:50], 1.0)
joined = tonari.plan(3000, 3000, 40, 5, self_join=True, method="exact", active_rows=1152)
held += [tonari.knn_graph(x[:3000], 5, plan=joined), tonari.knn_graph(x[:3000], 5, method="nn-descent", recall=0.9)]
held += [tonari.pairs(low, 0.1), tonari.search(low, low, 5, method="kdtree"), tonari.mutual_reachability_tree(low, 3)]
held += [tonari.search(low, low, 5, plan=tonari.plan(8000, 8000, 3, 5, method="kdtree", traversal="buffered"))]
held += [tonari.radius_count(x[:50].copy(), x, 1.0, method="exact")]
scipy = importlib.util.find_spec("scipy")
if scipy:
    from scipy.sparse import csr_array
    sparse = csr_array(np.where(x[:300] > 1, x[:300], 0))
    held += [tonari.search(sparse[:50], sparse, 5), tonari.radius_search(sparse[:50], sparse, 1.0)]
held += [tonari.search(np.where(x[:200] > 1, np.nan, x[:200]), x[:200], 5, metric="nan_euclidean")]
held += [_native.SelectCounters(), _native.DefaultFloats()]
cached, seen, found = [empty.__self__ for empty in caches._emptied], set(), set()
while cached:
    each = cached.pop()
    if id(each) not in seen and not isinstance(each, (type, types.FunctionType, types.ModuleType)):
        seen.add(id(each))
        found |= {type(each).__name__} & kinds
        cached += gc.get_referents(each)
lacking = {name for name in kinds - used if scipy or not name.startswith("Sparse")}
print(len(seen) > 100, sorted(lacking), sorted(found))
"""


@pytest.mark.process
def test_nothing_is_told_of_a_program_that_used_every_native_class(tmp_path: Path) -> None:
    """Caches keep no native objects either.

    An object that keeps a module alive after the interpreter's end would keep them too.
    """
    assert leave(EVERY_KIND, tmp_path) == (0, "True [] []\n", "")


@pytest.mark.process
@pytest.mark.parametrize("processes", [pytest.param(0, marks=pytest.mark.full), 1])
def test_a_run_of_tests_leaks_no_parameter(processes: int, tmp_path: Path) -> None:
    """PyTorch and pytest-xdist keep objects alive after the interpreter's end, but not the tests that were
    collected."""
    if not processes:
        pytest.importorskip("torch")
    (tmp_path / "test_parameter.py").write_text("""
import pytest
try:
    import torch
except ImportError:
    pass
from tonari.core import _native

@pytest.mark.parametrize("form", [_native.Form("l1", [0.0], 1.0)])
@pytest.mark.parametrize("n", range(5))
def test_parameter(form, n):
    pass
""")
    folders = [str(Path(tonari.__file__).parents[1]), str(Path(__file__).parents[3])]
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "tests.conftest",
            "-p",
            "no:cacheprovider",
            f"-n{processes}",
            "--dist=worksteal",
        ],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(folders)},
        cwd=tmp_path,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


# Registered before tonari is imported, so it runs after tonari's own functions at exit.
LATE = """
import atexit, threading
def late():
    helper = tonari.core.process.leaving.Helper
    print(sorted(t.name for t in threading.enumerate() if isinstance(t, helper) and t.daemon))
    {more}
atexit.register(late)
"""


@pytest.mark.process
@pytest.mark.parametrize("verb", ["search", "nn-descent", "search_to_file", "search_chunks"])
def test_our_threads_are_gone_before_the_interpreter_is(verb: str, tmp_path: Path) -> None:
    code = f"""{LATE.format(more="")}{PREPARE}{again(verb)}
def helpers():
    return [t for t in threading.enumerate() if isinstance(t, tonari.core.process.leaving.Helper) and t.daemon]
threading.Thread(target=work, daemon=True).start()
while not helpers():
    time.sleep(0.001)
"""
    assert leave(code, tmp_path) == (0, "[]\n", "")


@pytest.mark.process
def test_exit_in_the_middle_of_a_stream(tmp_path: Path) -> None:
    """Nobody closes the generator; all its threads are daemon threads of tonari."""
    code = f"""{LATE.format(more="")}{PREPARE}
stream = tonari.Index(x, method="exact").search_chunks(x, 10, chunk_rows=1000)
next(stream)
"""
    started = time.monotonic()
    assert leave(code, tmp_path) == (0, "[]\n", "")
    assert time.monotonic() - started < 20


@pytest.mark.process
def test_a_stream_that_was_stopped_does_not_look_whole(tmp_path: Path) -> None:
    more = """
    try:
        print(sum(len(found.indices) for found in stream))
    except Exception as error:
        print(type(error).__name__, error)"""
    code = f"""{LATE.format(more=more)}{PREPARE}
stream = tonari.Index(x, method="exact").search_chunks(x, 10, chunk_rows=1000)
next(stream)
"""
    assert leave(code, tmp_path) == (0, "[]\nEnded the interpreter exits\n", "")


@pytest.mark.process
def test_a_source_that_never_comes_back_is_not_waited_for(tmp_path: Path) -> None:
    code = f"""{PREPARE}
def source():
    yield x[:10]
    threading.Event().wait()
stream = tonari.Index(x).search_chunks(source(), 10)
next(stream)
sys.exit(3)
"""
    assert leave(code, tmp_path) == (3, "", "")


@pytest.mark.process
def test_threads_that_are_no_daemons_finish_their_work(tmp_path: Path) -> None:
    code = f"""{PREPARE}
def work():
    found = tonari.search(x[:3000], x, 10, threads=2)
    print(found.indices[:, 0].tolist() == list(range(3000)))
threading.Thread(target=work).start()
sys.exit(3)
"""
    assert leave(code, tmp_path) == (3, "True\n", "")


@pytest.mark.process
@pytest.mark.skipif(sys.version_info >= (3, 12), reason="starts no threads at exit")
def test_searches_at_exit_are_answered(tmp_path: Path) -> None:
    more = "print(tonari.search(x[:3000], x, 10, threads=2).indices[:, 0].tolist() == list(range(3000)))"
    assert leave(LATE.format(more=more) + PREPARE, tmp_path) == (0, "[]\nTrue\n", "")


@pytest.mark.process
def test_what_a_file_holds_at_exit_is_gone_on_from(tmp_path: Path) -> None:
    call = "tonari.search_to_file(x, x, 10, 'found.ibin', chunk_rows=1000, progress=progress)"
    code = f"""{PREPARE}
first = threading.Event()
def progress(done, total):
    if done >= 3000:
        first.set()
        time.sleep(0.1)  # so that the search is not over before the interpreter ends
threading.Thread(target=lambda: {call}, daemon=True).start()
first.wait()
time.sleep(0.3)
"""
    assert leave(code, tmp_path) == (0, "", "")
    assert (tmp_path / "found.ibin.part").exists()
    again = f"""{PREPARE}
seen = []
def progress(done, total):
    seen.append(done)
{call}
found = tonari.io.read_ground_truth("found.ibin")
print(seen[0] >= 1000, found.indices[:, 0].tolist() == list(range(30_000)))
"""
    assert leave(again, tmp_path) == (0, "True True\n", "")


@pytest.mark.process
@pytest.mark.parametrize("then", ["time.sleep(60)", "workers.map(task, range(1))", "workers.map(task, range(3))"])
def test_threads_that_are_kept_are_gone_before_the_interpreter_is(then: str, tmp_path: Path) -> None:
    """A daemon thread of the caller, between its maps, never sees stopped threads."""
    code = f"""{LATE.format(more="")}{PREPARE}
from tonari.core.process.workers import Workers
kept = threading.Event()
def work():
    with Workers(2) as workers:
        def task(item):
            workers.check()
            time.sleep(0.001)
        workers.map(task, range(3))
        kept.set()
        while True:
            {then}
threading.Thread(target=work, daemon=True).start()
kept.wait()
sys.exit(3)
"""
    started = time.monotonic()
    assert leave(code, tmp_path) == (3, "[]\n", "")
    assert time.monotonic() - started < 20
