"""Every public function keeps to its memory budget for every rule: resident memory, in a process for each function."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tonari

MIB = 1 << 20
MARGIN = 6 * MIB  # slack of the allocator, its arenas for two threads, stacks, and Python objects

ONE = ("where", "batch")
EACH = ("where", "mask", "bits", "lists", "csr", "same", "other")
RULES = {
    "search": EACH,
    "radius_count": EACH,
    "radius_search": EACH,
    "radius_search, 65": ("none", *EACH),
    "knn_graph": ONE,
    "radius_graph": ONE,
    "radius_graph, 65": ("none", *ONE),
    "pairs": ("none", "where"),
    "kth_distance": ("none",),
    "Index.search": EACH,
    "Index.radius_count": EACH,
    "Index.radius_search": EACH,
    "Index.radius_search, 65": ("none", *EACH),
    "Index.radius_chunks, 65": ("none",),
}

CHILD = """
import json, re, sys
import numpy as np, tonari
from tonari.core.errors import BudgetExceeded

verb, rules, n, m = {arguments!r}
random = np.random.default_rng(0)
points, queries = (random.standard_normal((rows, 8), dtype=np.float32) for rows in (n, m))
name, _, most = verb.partition(", ")
joined = name in ("knn_graph", "radius_graph", "pairs", "kth_distance")
everything, some = 1e9, 1.2  # radii: all points, and few, where all would be a large result

def peak():
    return int(re.search(r"VmHWM:\\\\s+(\\\\d+) kB", open("/proc/self/status").read())[1]) * 1024

def given(rule):
    if rule == "none":
        return {{}}
    if rule == "where":
        return {{"where": random.random(n) < 0.3}}
    if rule == "batch":
        return {{"batch": random.integers(0, 40, n)}}
    if rule in ("mask", "bits"):
        mask = random.random((m, n)) < 0.02
        return {{"where": mask if rule == "mask" else np.packbits(mask, axis=1, bitorder="little")}}
    if rule in ("lists", "csr"):
        lists = random.integers(0, n, (m, 20))
        return {{"exclude": lists if rule == "lists" else (np.arange(m + 1) * 20, lists.ravel())}}
    groups = {{"query_groups": random.integers(0, 3, m), "point_groups": random.integers(0, 3, n), "groups": rule}}
    return groups

def prepared(memory):
    own = dict(threads=2, metric="euclidean")
    if name.startswith("Index"):
        return tonari.Index(points, memory=memory, **own)
    return dict(memory=memory, **own)

def call(made, rule):
    of = tonari if isinstance(made, dict) else made
    own = made if isinstance(made, dict) else {{}}
    short = name.removeprefix("Index.")
    asked = {{}} if joined else {{"queries": queries}}
    if of is tonari:
        asked["points"] = points
    if short in ("search", "knn_graph", "kth_distance"):
        asked["k"] = 10
    else:
        asked["radius"] = everything if most or short == "radius_count" else some
    if most:
        asked["max_neighbors"] = int(most)
    found = getattr(of, short)(**asked, **own, **rule)
    if short == "radius_chunks":
        return max(sum(part.nbytes for part in each) for each in found)
    if short == "knn_graph":
        return found.indices.nbytes + found.distances.nbytes
    return sum(part.nbytes for part in found) if isinstance(found, tuple) else found.nbytes

rows = []
call(prepared(16_000_000), given(rules[0]))  # whatever is loaded once is loaded
for rule in rules:
    made, refusals = given(rule), 0
    for budget in (16_000_000, 1):
        while True:
            open("/proc/self/clear_refs", "w").write("5")  # the peak starts again from what is held now
            before = peak()
            try:
                results = call(prepared(budget), made)
            except BudgetExceeded as error:
                refusals += 1
                least = re.search(r"allow at least (\\\\d+)", str(error))
                if budget != 16_000_000 and refusals < 8:  # of an Index, of rules, of their searches
                    budget = int(least[1]) if least else 6_000_000  # none for copies, before anything is planned
                    continue
                rows.append((rule, budget, 0, 0, str(error)))
            else:
                one = budget == 1 and "one byte is accepted"
                rows.append((rule, budget, peak() - before, results, one or ""))
            break
print(json.dumps(rows))
"""


# Each case takes seconds in a process of its own.
THIN = ("search", "radius_count")


@pytest.mark.process
@pytest.mark.skipif(not os.access("/proc/self/clear_refs", os.W_OK), reason="the peak cannot be measured here")
@pytest.mark.parametrize("verb", [pytest.param(verb, marks=() if verb in THIN else pytest.mark.full) for verb in RULES])
def test_peak_of_rules_stays_within_the_budget(verb: str) -> None:
    sizes = (3_000, 3_000) if "graph" in verb or verb in ("pairs", "kth_distance") else (8_000, 500)
    made = subprocess.run(
        [sys.executable, "-c", CHILD.format(arguments=(verb, RULES[verb], *sizes)).replace("\\\\", "\\")],
        env=os.environ | {"PYTHONPATH": str(Path(tonari.__file__).parents[1])},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    measured = json.loads(made.stdout)
    assert {rule for rule, *_ in measured} == set(RULES[verb])
    wrong = [
        f"{rule}, memory={budget}: {refused or f'peak {peak}, results {results}'}"
        for rule, budget, peak, results, refused in measured
        if refused or peak > budget + 3 * results + MARGIN
    ]
    assert not wrong, "\n".join(wrong)
