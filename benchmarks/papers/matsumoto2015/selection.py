"""matsumoto2015, section VI: the threshold from a sample, compaction and the min-max heap; figures 5 to 12.

The paper has image descriptors (NUS-WIDE, ImageNet); here the values are distances between real SIFT descriptors, and
uniform numbers. Its 512 queries, k = 64, n_S = 512 and batch of 4 are used wherever they do not vary. Its figures 5 to
9 show compression and time in separate figures; 6 and 8 are the times of 5 and 7. Times are of the whole selection:
sample, compaction, and the min-max heap of the paper or our halving. Figures 10 to 12 compare with the truncated
bitonic sort, with the library's n_S = 8 k and batch. On a GPU the library has neither batches nor the heap, so figure 9
is only for a CPU.

Figures 5 and 7 count the survivors of two thresholds: that of tonari's rank in the sample, and on the CPU the paper's
own, the k-th (equations 3 and 4). Figures 10 to 12 end at the number of available descriptors; "10-large" to "12-large"
have the paper's n, with uniform values: ImageNet's 2,213,937 and samples of it, and NUS-WIDE's 269,648. A CPU gets
fewer queries there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ...harness.datasets.selections import sift_size
from ...harness.plots import Curves, Panel
from ...harness.run import Run
from ...suites.select.measure import size
from ..sweep import Paper, Point, curves, seconds

DATA = ("sift", "uniform")
QUERIES, N, K, SAMPLES, BATCH = 512, 2**16, 64, 512, 4
SIZES_SAMPLES = tuple(2**i for i in range(6, 14))
SIZES_K = tuple(2**i for i in range(5, 10))
BATCHES = (1, 2, 4, 8, 16)
SIZES_N = tuple(2**i for i in range(12, 17))
SIZES_QUERIES = tuple(2**i for i in range(9, 14))
IMAGENET, NUS_WIDE = 2_213_937, 269_648
LARGE_N = (250_000, 500_000, 1_000_000, IMAGENET)
LARGE_QUERIES: dict[str, tuple[int, ...]] = {"cuda": SIZES_QUERIES, "cpu": tuple(2**i for i in range(5, 10))}
LARGE = ("10-large", "11-large", "12-large")
FINISHES: dict[str, dict[str, dict[str, Any]]] = {
    "cpu": {finish: {"finish": finish} for finish in ("heap", "halving")},
    "cuda": {"halving": {}},
}


def points(run: Run) -> Iterator[Point]:
    """Yield all measurements for figures 5 to 12, for each kind of data."""
    device = run.device.kind
    finishes = FINISHES[device]
    rivals = {f"threshold, {finish}": ("threshold", options) for finish, options in finishes.items()}
    rivals |= {"heap queue": ("heap", {}), "bitonic": ("bitonic", {})}
    batch: dict[str, Any] = {"batch": BATCH} if device == "cpu" else {}
    for data in DATA:
        rows, n = size(run, QUERIES, N)
        many = size(run, max(SIZES_QUERIES), n)[0]
        if data == "sift":
            many, n = sift_size(many, n)
            rows = min(rows, many)
        for samples in dict.fromkeys(min(samples, n) for samples in SIZES_SAMPLES):
            yield from _threshold("5", "6", data, rows, n, K, {"samples": samples} | batch, finishes)
        for k in SIZES_K:
            yield from _threshold("7", "8", data, rows, n, k, {"samples": min(SAMPLES, n)} | batch, finishes)
            if device == "cpu":
                # without the option `samples`, the library chooses n_S = 8 k
                paper = {"finish": "heap"} | batch
                series = f"{data}, the paper's rank, n_S = 8 k: ratios"
                yield Point("7", series, rows, n, k, "threshold", paper, data, counted=True)
        for together in BATCHES if device == "cpu" else ():
            extra = {"samples": min(SAMPLES, n), "batch": together}
            yield from _threshold("9", "9", data, rows, n, K, extra, finishes)
        for name, (method, options) in rivals.items():
            for length in dict.fromkeys(min(length, n) for length in SIZES_N):
                yield Point("10", f"{data}: {name}", rows, length, K, method, options, data)
            for k in SIZES_K:
                yield Point("11", f"{data}: {name}", rows, n, k, method, options, data)
            for queries in dict.fromkeys(min(queries, many) for queries in SIZES_QUERIES):
                yield Point("12", f"{data}: {name}", queries, n, K, method, options, data)
    yield from _large(run, rivals)


def _large(run: Run, rivals: dict[str, tuple[str, dict[str, Any]]]) -> Iterator[Point]:
    data, many = "uniform", LARGE_QUERIES[run.device.kind]
    rows, n = size(run, many[0], IMAGENET)
    for name, (method, options) in rivals.items():
        series = f"{data}: {name}"
        for length in dict.fromkeys(size(run, 1, wanted)[1] for wanted in LARGE_N):
            yield Point("10-large", series, rows, length, K, method, options, data)
        for k in SIZES_K:
            yield Point("11-large", series, rows, n, k, method, options, data)
        for queries, length in dict.fromkeys(size(run, wanted, NUS_WIDE) for wanted in many):
            yield Point("12-large", series, queries, length, K, method, options, data)


def _threshold(
    ratios: str,
    times: str,
    data: str,
    rows: int,
    n: int,
    k: int,
    options: dict[str, Any],
    finishes: dict[str, dict[str, Any]],
) -> Iterator[Point]:
    # a sample of fewer than k values has no k-th value, hence no threshold
    if options["samples"] < k:
        return
    yield Point(ratios, f"{data}: ratios", rows, n, k, "threshold", options, data, counted=True)
    if "heap" in finishes:
        paper = options | finishes["heap"]
        yield Point(ratios, f"{data}, the paper's rank: ratios", rows, n, k, "threshold", paper, data, counted=True)
    for finish, extra in finishes.items():
        yield Point(times, f"{data}: {finish}", rows, n, k, "threshold", options | extra, data)


def summary(counters: Any, point: Point) -> dict[str, Any]:
    """Return, from the counters, the ratios of equations 3 and 4 (compression and threshold)."""
    return {"compression_ratio": counters.compression_ratio, "threshold_ratio": counters.threshold_ratio}


# --- drawing -----------------------------------------------------------------------------------------------------


def panels(figure: str, rows: Sequence[dict[str, Any]]) -> list[Panel]:
    """Return the panels of one figure of the paper, made from its rows."""
    if figure.removesuffix("-large") in RIVALRIES:
        x, label, height = RIVALRIES[figure.removesuffix("-large")]
        unit = "milliseconds" if height is _milliseconds else "microseconds per query"
        found = []
        for data in DATA:
            own = [row | {"series": row["series"].removeprefix(f"{data}: ")} for row in rows if row["data"] == data]
            if not own:
                continue
            found.append(Panel(data, label, unit, curves(own, x, height)))
        return found
    option, label = {
        "5": ("samples", "samples n_S"),
        "6": ("samples", "samples n_S"),
        "7": ("k", "k"),
        "8": ("k", "k"),
        "9": ("batch", "rows in a batch"),
    }[figure]
    placed = [row | {"x": row["k"] if option == "k" else _option(row, option)} for row in rows]
    times = Panel("time", label, "milliseconds", curves(placed, "x", _milliseconds))
    ratios = [
        Panel("compression (eq. 4)", label, "n / values left", _ratios(placed, "compression_ratio")),
        Panel("threshold (eq. 3)", label, "k-th smallest / threshold", _ratios(placed, "threshold_ratio"), log_y=False),
    ]
    return {"5": ratios, "6": [times], "7": ratios, "8": [times], "9": [*ratios, times]}[figure]


def _ratios(rows: Sequence[dict[str, Any]], name: str) -> Curves:
    found = curves(rows, "x", lambda row: row["counters"].get(name))
    return {series.removesuffix(": ratios"): places for series, places in found.items()}


def _option(row: dict[str, Any], name: str) -> int:
    return int(row["options"][name])


def _milliseconds(row: dict[str, Any]) -> float | None:
    value = seconds(row)
    return None if value is None else value * 1e3


def _per_query(row: dict[str, Any]) -> float | None:
    value = seconds(row)
    return None if value is None else value * 1e6 / float(row["m"])


# For each figure that compares with other methods: the column that varies, its label, and the curves.
RIVALRIES: dict[str, tuple[str, str, Callable[[dict[str, Any]], float | None]]] = {
    "10": ("n", "n", _milliseconds),
    "11": ("k", "k", _milliseconds),
    "12": ("m", "queries", _per_query),
}
PAPER = Paper(
    "matsumoto2015",
    ("5", "6", "7", "8", "9", "10", "11", "12", *LARGE),
    points,
    panels,
    summary,
    devices={"9": ("cpu",)},
    rare=dict.fromkeys(LARGE, ("cpu",)),
)
