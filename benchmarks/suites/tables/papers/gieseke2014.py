"""Claims of gieseke2014 (buffer k-d trees), which measured magnitudes of the SDSS on a GeForce GTX 770 and four
cores."""

# ruff: noqa: RUF001 (tables are written with the signs of mathematics)

from __future__ import annotations

from ....harness.report.results import Where
from .claims import PERCENT, RATE, SECONDS, Claim, always, at_most, replaced, run
from .measures import Measure, entry, over, portion, rate, relative, seconds, speed_up

MILLION = 10**6
WALK, BUFFERED, EXACT = "tonari kdtree", "tonari kdtree, buffered", "tonari exact"
SUITE = {"suite": "kdtree", "stage": "search"}
PAPER = {"suite": "gieseke2014", "stage": "search"}
TABLE = {**PAPER, "case": "table2-d10", "device": "cuda"}
WIDE, BESIDE = ({**TABLE, "case": case} for case in ("table2-d27", "processors-d10"))
PHASES = {**PAPER, "case": "fig4-d10", "who": BUFFERED}
FIND, PROCESS, SORT = (f"extras.{name}_seconds" for name in ("find", "process", "sort"))
HEIGHTS = tuple(range(6, 15))
STREAM = {"suite": "kdtree", "device": "cuda", "who": WALK, "stage": "stream"}


def _faster(case: str, device: str, peer: str) -> Measure:
    where = {**SUITE, "case": case, "device": device}
    return speed_up({**where, "who": WALK}, {**where, "who": peer})


def _heights(who: str) -> Measure:
    """Return a measure: the speed of each lower tree, divided by that of the highest tree."""
    where: Where = {**PAPER, "case": "fig2-d10", "device": "cuda", "who": who}
    highest = {**where, "extras.height": HEIGHTS[-1]}
    return over({f"height {height}": speed_up({**where, "extras.height": height}, highest) for height in HEIGHTS[:-1]})


def _growth(who: str) -> Measure:
    """Return a measure: the seconds at n = 10^6 divided by the seconds at n = 2^14."""
    where = {**PAPER, "case": "fig6-d10", "device": "cpu", "who": who}
    return speed_up({**where, "n": 2**14}, {**where, "n": MILLION})


def _command(case: str, device: str = " --device cuda") -> str:
    return run(f"gieseke2014{device} --case {case}")


def _search(case: str) -> str:
    return run(f"kdtree --device cuda --case {case}")


CLAIMS = (
    Claim(
        "The buffered traversal is faster than brute force on the same GPU, d = 10",
        "2× to 55× over all data (abstract, table 2)",
        _command("table2-d10"),
        speed_up({**TABLE, "who": BUFFERED}, {**TABLE, "who": EXACT}),
        2,
        always,
    ),
    Claim(
        "The walk is faster than brute force on the same GPU, d = 5 and 10",
        "2× to 55× over all data (abstract, table 2)",
        _search("sift-d10"),
        over({case: _faster(case, "cuda", EXACT) for case in ("sift-d5", "sift-d10", "magnitudes-d10")}),
        2,
        always,
    ),
    Claim(
        "The walk is still faster than brute force at d = 27",
        "“practical benefits” up to d = 27 (4.3)",
        _search("sift-d27"),
        _faster("sift-d27", "cuda", EXACT),
        rule=always,
    ),
    Claim(
        "The buffered traversal is still faster than brute force at d = 27",
        "“practical benefits” up to d = 27 (4.3)",
        _command("table2-d27"),
        speed_up({**WIDE, "who": BUFFERED}, {**WIDE, "who": EXACT}),
        rule=always,
    ),
    Claim(
        "Both traversals on a GPU are faster than the walk on all cores of its host",
        "5× to 34× (abstract, table 2)",
        _command("processors-d10"),
        over({who: entry({**BESIDE, "who": who}, "extras.over_all_cores") for who in (BUFFERED, WALK)}),
        5,
        always,
    ),
    Claim(
        "Instead: on a CPU, the walk compared with other k-d trees on the same two cores",
        "",
        run("kdtree --case magnitudes-d10"),
        over({peer: _faster("magnitudes-d10", "cpu", peer) for peer in ("pykdtree", "ckdtree")}),
        rule=replaced,
    ),
    Claim(
        "The buffered traversal prefers low trees: speed at heights 6 to 13 over speed at height 14",
        "“a smaller tree height was favorable” (4.3, fig. 2)",
        _command("fig2-d10"),
        _heights(BUFFERED),
    ),
    Claim(
        "Without buffers, high trees are better: speed of the walk at heights 6 to 13 over speed at height 14",
        "the larger, the better (4.3, fig. 2)",
        _command("fig2-d10"),
        _heights(WALK),
        1,
        at_most,
    ),
    Claim(
        "Locality matters: 10⁷ queries sorted by their first leaf, compared with the given order",
        "“crucial role” (4.3, fig. 3a; buffers there)",
        _command("fig3a-d10"),
        speed_up(
            *(
                {**PAPER, "case": "fig3a-d10", "device": "cuda", "who": WALK, "m": 10 * MILLION, "extras.sort": sort}
                for sort in (True, False)
            )
        ),
        rule=always,
    ),
    Claim(
        "Buffers provide locality: the buffered traversal compared with the walk, 10⁷ queries in the given order",
        "“crucial role” (4.3, fig. 3a)",
        _command("fig3a-d10"),
        speed_up(
            *(
                {**PAPER, "case": "fig3a-d10", "device": "cuda", "who": who, "m": 10 * MILLION, "extras.sort": False}
                for who in (BUFFERED, WALK)
            )
        ),
        rule=always,
    ),
    Claim(
        "On the GPU, rearranging queries is a small part of processing buffers; here the share of sorting",
        "below 10 % (4.3, fig. 3b)",
        _command("fig4-d10"),
        portion({**PHASES, "device": "cuda", "m": 10 * MILLION}, SORT, PROCESS),
        0.1,
        at_most,
        PERCENT,
    ),
    Claim(
        "Without a GPU, processing buffers takes nearly all of the time; here on one core, with its vector units",
        "above 99 % (4.3, fig. 4)",
        _command("fig4-d10", ""),
        portion({**PHASES, "device": "cpu", "m": MILLION // 10}, PROCESS, FIND),
        0.99,
        always,
        PERCENT,
    ),
    Claim(
        "The buffered traversal is faster on the GPU than on one core",
        "about 130× (4.3, fig. 4)",
        _command("processors-d10"),
        entry({**BESIDE, "who": BUFFERED}, "extras.over_one_core"),
        130,
        always,
    ),
    Claim(
        "The time of brute force hardly depends on k: time at k = 16 over time at k = 1",
        "“not significantly affected” (4.3, fig. 5)",
        _command("fig5-d10"),
        speed_up(
            *({**PAPER, "case": "fig5-d10", "device": "cuda", "who": EXACT, "k": k} for k in (1, 16)),
        ),
        1.5,
        at_most,
    ),
    Claim(
        "From 2¹⁴ to 10⁶ points, the time of the tree grows less than that of brute force, on two cores",
        "“much better” (4.3, fig. 6)",
        _command("fig6-d10", ""),
        relative(_growth(EXACT), _growth(WALK)),
        rule=always,
    ),
    Claim(
        "Time of 10⁷ queries among 2 × 10⁶ points, d = 10: the walk",
        "39 s (4.3, table 2)",
        _search("magnitudes-d10"),
        seconds({**SUITE, "case": "magnitudes-d10", "device": "cuda", "who": WALK}),
        39,
        at_most,
        SECONDS,
    ),
    Claim(
        "Time of the same queries: the buffered traversal",
        "39 s (4.3, table 2)",
        _command("table2-d10"),
        seconds({**TABLE, "who": BUFFERED}),
        39,
        at_most,
        SECONDS,
    ),
    Claim(
        "A catalogue of 1,178 × 10⁶ queries, from file to file; here a tenth as many queries, synthetic",
        "4639 s, that is 0.254 million/s (4.3)",
        _search("stream-file"),
        rate({**STREAM, "case": "stream-file"}),
        1178e6 / 4639,
        always,
        RATE,
    ),
    Claim(
        "Instead: the walk compared with the buffered traversal, d = 10",
        "",
        _command("table2-d10"),
        speed_up({**TABLE, "who": WALK}, {**TABLE, "who": BUFFERED}),
        rule=replaced,
    ),
)
