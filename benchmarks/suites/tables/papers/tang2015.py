"""Claims of tang2015 (Merge Queue, Buffered Search, Hierarchical Partition), for 2^13 rows on a Tesla C2075."""

# ruff: noqa: RUF001 (tables are written with the signs of mathematics)

from __future__ import annotations

from collections.abc import Sequence

from ....harness.report.results import Where
from .claims import PERCENT, Claim, always, replaced, run
from .measures import Measure, least_of, over, share_best, speed_up

N, K = 2**15, 2**8
KS = tuple(2**i for i in range(5, 11))
NS = tuple(2**i for i in range(13, 17))
ALONG_K = {f"k = {k}": (N, k) for k in KS}
ALONG_N = {f"n = {n}": (n, K) for n in NS}
QUEUES = {"insertion": "insertion queue", "heap": "heap queue", "merge": "merge queue, aligned"}
FULL = ("full buffer", "full buffer, sorted")
GROUPS = tuple(f"G = {group}" for group in (2, 4, 8, 16))
BEST = "merge, aligned, buffer + HP"


def _at(case: str, series: str, n: int, k: int) -> Where:
    return {"suite": "tang2015", "device": "cuda", "case": case, "extras.series": series, "n": n, "k": k}


def _faster(case: str, ours: str, theirs: str, n: int = N, k: int = K) -> Measure:
    return speed_up(_at(case, ours, n, k), _at(case, theirs, n, k))


def _sweep(case: str, queue: str, options: Sequence[str], places: dict[str, tuple[int, int]]) -> Measure:
    """Return a measure: the speed-up of each option of a queue over the bare queue."""
    return over(
        {
            f"{at}, {option}" if options[1:] else at: _faster(case, f"{queue}: {option}", f"{queue}: bare", *place)
            for at, place in places.items()
            for option in options
        }
    )


def _table_sweep(ours: str, theirs: str, ks: Sequence[int]) -> Measure:
    return over({f"k = {k}": _faster("table-I", ours, theirs, k=k) for k in ks})


def _share(series: str, k: int | None = None) -> Where:
    """Return the conditions for rows of one part of a search; distances and copies have no k, so k is None for them."""
    return {"suite": "tang2015", "device": "cuda", "case": "share", "extras.series": series, "k": k}


def _best_queue(part: str, k: int, host_k: int | None = None) -> Measure:
    """Return a measure: the seconds of the fastest queue divided by those of another part of the search."""
    return least_of(*(speed_up(_share(part, host_k), _share(queue, k)) for queue in QUEUES))


def _command(case: str) -> str:
    return run(f"tang2015 --device cuda --case {case}")


def _peaks(
    said: str,
    section: str,
    case: str,
    figures: Sequence[float],
    options: Sequence[str],
    places: dict[str, tuple[int, int]],
) -> list[Claim]:
    """Return a claim for each queue, about its largest improvement over the bare queue."""
    return [
        Claim(
            f"{said}: {name}",
            f"up to {figure}× ({section})",
            _command(case),
            _sweep(case, queue, options, places),
            figure,
        )
        for (queue, name), figure in zip(QUEUES.items(), figures, strict=True)
    ]


CLAIMS = (
    Claim(
        "An aligned merge is faster than merging alone",
        "up to 10.51× (IV-D)",
        _command("table-I"),
        _table_sweep("merge, aligned", "merge", KS),
        10.51,
    ),
    *_peaks("Buffered Search, a full buffer", "IV-B, fig. 6", "fig6", (5.39, 1.28, 1.85), FULL, ALONG_K),
    Claim(
        "A full buffer is always better than buffers that each lane empties on its own",
        "always (IV-B)",
        _command("fig6"),
        over(
            {
                f"{queue}, k = {k}": _faster("fig6", f"{queue}: full buffer", f"{queue}: buffer", k=k)
                for queue in QUEUES
                for k in KS
            }
        ),
        rule=always,
    ),
    *_peaks("Hierarchical Partition at n = 2¹⁵", "IV-C, fig. 7", "fig7", (7.4, 3.4, 5.69), GROUPS, ALONG_K),
    *_peaks("Hierarchical Partition at k = 2⁸", "IV-C, fig. 8", "fig8", (8.94, 3.0, 6.23), GROUPS, ALONG_N),
    Claim(
        "Groups of G = 4 are the best",
        "in most cases (IV-C)",
        _command("fig7"),
        share_best(
            {
                f"{queue}, k = {k}": {
                    group: _faster("fig7", f"{queue}: {group}", f"{queue}: bare", k=k) for group in GROUPS
                }
                for queue in QUEUES
                for k in KS
            },
            "G = 4",
        ),
        0.5,
        always,
        PERCENT,
    ),
    *_peaks(
        "Buffered Search and Hierarchical Partition together",
        "IV-D, fig. 9",
        "fig9",
        (16.89, 3.57, 7.49),
        ("both",),
        ALONG_K | ALONG_N,
    ),
    Claim(
        "With buffer and partition, the merge queue is faster than the heap, k = 2¹⁰",
        "1.3× (IV-D)",
        _command("table-I"),
        _table_sweep(BEST, "heap, buffer + HP", (1024,)),
        1.3,
        always,
    ),
    Claim(
        "The merge queue with buffer and partition is faster than the truncated bitonic sort, k = 2⁵ to 2⁹",
        "2.37× to 7.5× (IV-D)",
        _command("table-I"),
        _table_sweep(BEST, "bitonic", KS[:5]),
        2.37,
        always,
    ),
    Claim(
        "The merge queue with buffer and partition is faster than quick multi-select, k = 2⁶ to 2⁹",
        "up to 4.2× (abstract, IV-D)",
        _command("table-I"),
        _table_sweep(BEST, "quick, block", KS[1:5]),
        4.2,
    ),
    *(
        Claim(
            f"Selection takes longer than the distances on the GPU: the best queue, k = {power}",
            f"{took} s over 0.14 s (table I)",
            _command("share"),
            _best_queue("distances", k),
            took / 0.14,
            always,
        )
        for k, power, took in ((256, "2⁸", 0.14), (1024, "2¹⁰", 0.58))
    ),
    Claim(
        "All cores of a CPU select about as fast as the best queue, k = 2⁸",
        "0.14 s over 0.2 s, 16 cores (table I)",
        _command("share"),
        _best_queue("host", 256, host_k=256),
        0.14 / 0.2,
        always,
    ),
    Claim(
        "Copying the distances to the CPU takes longer than selecting on all its cores, k = 2⁸",
        "0.46 s over 0.2 s (table I)",
        _command("share"),
        speed_up(_share("host", 256), _share("copy")),
        0.46 / 0.2,
        always,
    ),
    Claim(
        "Instead: `hierarchical`, with one program per row, compared with the merge queue with buffer and partition",
        "",
        _command("table-I"),
        _table_sweep("hierarchical", BEST, KS),
        rule=replaced,
    ),
    Claim(
        "Instead: `threshold` compared with the merge queue with buffer and partition",
        "",
        _command("table-I"),
        _table_sweep("threshold", BEST, KS),
        rule=replaced,
    ),
    Claim(
        "Instead: exact search compared with distances and then that merge queue, k = 2⁸ and 2¹⁰",
        "",
        _command("share"),
        over({f"k = {k}": speed_up(_share("search", k), _share("whole", k)) for k in (256, 1024)}),
        rule=replaced,
    ),
)
