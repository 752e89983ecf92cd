"""Streams of queries, timed from source to destination: made on the device, from and to host memory, from file to file.

Some queries and answers of every chunk are kept and verified after the clock has stopped, so the proof is about the
timed answers themselves. gieseke2014 answered 1.178 billion queries in chunks of ten million; a case on CUDA has a
tenth of these queries.
"""

from __future__ import annotations

import itertools
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ...harness.case import Case
from ...harness.datasets import few_dimensions
from ...harness.device import Timing
from ...harness.proof import WrongAnswer
from ...harness.proof.neighbors import PROOF, Answer, as_answer, sample_rows, truth
from ...harness.rows import merged
from ...harness.run import Run
from .search import COUNTED, TREE, Planned, data_of, index_of, speed

KEPT_ROWS = 16  # number of rows of each chunk that are verified
# Number of different chunks in host memory, which a stream repeats as often as necessary.
READY = 2


class Kept:
    """A sample of a stream's queries, taken from each chunk, and the answers to these queries."""

    def __init__(self) -> None:
        self.queries: list[Any] = []
        self.answers: list[Answer] = []

    def passing(self, chunks: Iterable[Any]) -> Iterator[Any]:
        """Yield the chunks of a stream unchanged, and keep a sample of the queries in each chunk."""
        import torch

        for chunk in chunks:
            self.queries.append(torch.as_tensor(chunk[sample_rows(len(chunk), KEPT_ROWS)]).clone())
            yield chunk

    def keep(self, found: Any) -> int:
        """Keep the answers to a chunk's sampled queries; return the number of all queries in the chunk."""
        rows = sample_rows(len(found.indices), KEPT_ROWS)
        self.answers.append(as_answer(type(found)(*(part[rows] for part in found)), "cpu"))
        return len(found.indices)

    def prove(self, points: Any, k: int, where: str) -> int:
        """Raise WrongAnswer unless all kept answers have the true bits; return how many they are."""
        import torch

        if len(self.queries) != len(self.answers):
            raise WrongAnswer(f"{len(self.queries)} chunks went in, {len(self.answers)} came out")
        queries = torch.cat([part.to(where) for part in self.queries])
        expected = truth(queries, points, k, where)
        for number, name in enumerate(("distance", "index")):
            ours = torch.cat([answer[number] for answer in self.answers])
            wrong = (ours != expected[number].cpu()).any(dim=1)
            if bool(wrong.any()):
                raise WrongAnswer(f"{name} of kept row {int(wrong.int().argmax())} differs from the reference")
        return len(queries)


def stream(run: Run, case: Case) -> None:
    """Time all queries of a case in ``Index.search_chunks``: first generated on the device, then from host memory."""
    data = data_of(run, case.resized(m=COUNTED))
    index = index_of(run, data, "kdtree")
    facts = Planned(run, case.resized(m=COUNTED), data).columns()
    warm(run, case, index)
    ways = {"chunks made on the device": lambda: made(run, case, case.m)} if run.cuda else {}
    ways["chunks in host memory"] = lambda: ready(run, case)
    for note, chunks in ways.items():
        passing(run, case, index, chunks(), data.points, facts, note)


def several(run: Run, case: Case) -> None:
    """Time all queries of a case from host memory, on one GPU and on all GPUs of the case."""
    data = data_of(run, case.resized(m=COUNTED))
    facts = Planned(run, case.resized(m=COUNTED), data).columns()
    points, chunks = data.points.cpu().numpy(), list(itertools.islice(ready(run, case), READY))
    for gpus in (1, case.gpus):
        devices = [f"cuda:{number}" for number in range(gpus)]
        index = run.tonari.Index(points, method="kdtree", device=devices, progress=False)
        # compiles kernels and allocates memory before the timed call
        for _ in index.search_chunks(chunks, case.k, progress=False):
            pass
        note = f"chunks in host memory, {gpus} GPU{'s' if gpus > 1 else ''}"
        passing(run, case, index, ready(run, case), data.points, facts | {"gpus": gpus}, note)


def passing(run: Run, case: Case, index: Any, chunks: Any, points: Any, facts: dict[str, Any], note: str) -> None:
    """Time a stream of queries to an index, verify some of its answers, and write its row."""
    kept = Kept()
    run.device.settle()
    started = time.perf_counter()
    # Kept answers are copied to the host, which waits for them: so the last chunk is complete when the clock stops.
    passed = sum(kept.keep(found) for found in index.search_chunks(kept.passing(chunks), case.k, progress=False))
    seconds = time.perf_counter() - started
    write(run, case, facts, note, seconds, passed, kept.prove(points, case.k, run.where))


def ready(run: Run, case: Case) -> Iterator[Any]:
    """Return an iterator over chunks in host memory that together have all queries of a case."""
    held = [chunk.cpu().numpy() for chunk in made(run, case, READY * case.chunk)]
    counts = [min(case.chunk, case.m - start) for start in range(0, case.m, case.chunk)]
    return (part[:count] for part, count in zip(itertools.cycle(held), counts, strict=False))


def made(run: Run, case: Case, total: int) -> Iterator[Any]:
    """Return an iterator over chunks of `total` generated queries."""
    return few_dimensions.chunks(case.data, total, case.chunk, case.d, run.where)


def warm(run: Run, case: Case, index: Any) -> None:
    """Search two chunks without timing them, to compile kernels and allocate memory."""
    for _ in index.search_chunks(made(run, case, min(case.m, 2 * case.chunk)), case.k, progress=False):
        pass


def file_stream(run: Run, case: Case) -> None:
    """Time all queries of a case from an .fbin file to an .ibin file, by ``search_to_file``."""
    import torch

    data = data_of(run, case.resized(m=COUNTED))
    index = index_of(run, data, "kdtree")
    facts = Planned(run, case.resized(m=COUNTED), data).columns()
    warm(run, case, index)
    with tempfile.TemporaryDirectory(prefix="tonari-stream-") as folder:
        queries, answers = Path(folder) / "queries.fbin", Path(folder) / "answers.ibin"
        write_fbin(queries, made(run, case, case.m), case.m, case.d)
        started = time.perf_counter()
        run.tonari.search_to_file(queries, index, case.k, answers, overwrite=True, progress=False)
        seconds = time.perf_counter() - started
        ids, distances = read_ibin(answers)
        rows = sample_rows(case.m)
        asked = np.memmap(queries, np.float32, "r", offset=8, shape=(case.m, case.d))[rows]
        kept = Kept()
        kept.queries = [torch.from_numpy(asked)]
        kept.answers = [Answer(torch.from_numpy(distances[rows]), torch.from_numpy(ids[rows]))]
        proved = kept.prove(data.points, case.k, run.where)
        size = (queries.stat().st_size + answers.stat().st_size) / 1e9
        note = f"file to file, {size:.3g} GB read and written"
        write(run, case, facts, note, seconds, len(ids), proved)


def write_fbin(path: Path, chunks: Iterable[Any], m: int, d: int) -> None:
    """Write rows to a file in Big-ANN's format .fbin."""
    with path.open("wb") as file:
        np.array([m, d], np.uint32).tofile(file)
        for chunk in chunks:
            chunk.cpu().numpy().tofile(file)


def read_ibin(path: Path) -> tuple[Any, Any]:
    """Return the indices and distances of a ground-truth file in Big-ANN's format, as memory-mapped arrays."""
    m, k = (int(value) for value in np.fromfile(path, np.uint32, 2))
    ids = np.memmap(path, np.int32, "r", offset=8, shape=(m, k))
    return ids, np.memmap(path, np.float32, "r", offset=8 + ids.nbytes, shape=(m, k))


def write(run: Run, case: Case, facts: dict[str, Any], note: str, seconds: float, passed: int, proved: int) -> None:
    """Write the rows of results about one stream."""
    if passed != case.m:
        raise WrongAnswer(f"{passed} answers to {case.m} queries")
    timing = Timing(seconds, seconds, seconds, 1)
    whole = facts | {"who": TREE, "stage": "stream", "proof": PROOF, "proved": proved, "recall": 1.0, "note": note}
    whole = merged(whole, speed(case, timing))
    # the required speeds differ by the source of the queries, which the notes name
    bars = [bar for bar in case.bars if bar.on in note]
    measured = {bar.on: case.m / seconds for bar in bars}
    run.write(case, [whole | verdict for verdict in run.verdicts(bars, measured)])
