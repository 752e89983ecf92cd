"""Rounds in which every two slabs meet once."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import tonari
from tests.helpers.checks import assert_same_neighbors
from tests.helpers.shards import by_shards, clustered, lists
from tonari.shards.routes.pair_rounds import groups_of, rounds_of


@pytest.mark.parametrize("route", ["ggm", "exact-pairs"])
def test_groups_of_slabs_do_not_change_the_bits(route: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points = clustered(420)
    given: dict[str, Any] = {"method": "exact"} if route == "exact-pairs" else {"method": route, "recall": 0.9}
    wanted = None
    for group in range(1, 5):
        by_shards(monkeypatch, 60, route=route, group=group)  # 7 slabs
        found = lists(tonari.build_graph(points, 5, tmp_path / str(group), **given))
        wanted = wanted or found
        assert_same_neighbors(found, wanted)


@pytest.mark.parametrize("group", range(1, 5))
@pytest.mark.parametrize("shards", range(1, 10))
def test_every_two_slabs_meet_once(shards: int, group: int) -> None:
    plan = SimpleNamespace(shards=shards, group=group)
    groups = groups_of(plan)  # type: ignore[arg-type]
    assert sorted(itertools.chain.from_iterable(groups)) == list(range(shards))
    assert max(map(len, groups)) <= min(group, shards)
    inner = [pair for shards in groups for pair in itertools.combinations(shards, 2)]
    outer = [
        pair for pairs in rounds_of(len(groups)) for a, b in pairs for pair in itertools.product(groups[a], groups[b])
    ]
    assert sorted(inner + outer) == list(itertools.combinations(range(shards), 2))


@pytest.mark.parametrize("shards", range(1, 10))
def test_every_two_players_meet_once(shards: int) -> None:
    rounds = rounds_of(shards)
    met = [pair for pairs in rounds for pair in pairs]
    assert sorted(met) == list(itertools.combinations(range(shards), 2))
    for pairs in rounds:
        players = [shard for pair in pairs for shard in pair]
        assert len(players) == len(set(players))
    assert len(rounds) == (shards - 1 if shards % 2 == 0 else shards) or shards == 1
