"""The plan of a build in its manifest."""

from __future__ import annotations

import dataclasses

from tonari.shards.plan import ShardPlan

PLAN = ShardPlan(
    route="exact-pairs", rows=10, shards=3, block=10, clusters=0, staged_bytes=0, engine_bytes=5, host_bytes=7,
    device_bytes=0, disk_bytes=9, seconds=0.5, group=2,
)  # fmt: skip


def test_a_manifest_gives_the_plan_back() -> None:
    assert ShardPlan.of_manifest(PLAN.as_dict()) == PLAN


def test_the_manifest_of_an_earlier_release_has_groups_of_one() -> None:
    facts = PLAN.as_dict()
    del facts["group"], facts["staged_bytes"]
    assert ShardPlan.of_manifest(facts) == dataclasses.replace(PLAN, group=1, staged_bytes=0)


def test_what_is_read_at_once() -> None:
    on_device = dataclasses.replace(PLAN, route="ggm", block=4, device_bytes=1)
    assert (PLAN.is_exact, PLAN.reads_ahead, PLAN.rows_read) == (True, False, 10)
    assert (on_device.is_exact, on_device.reads_ahead, on_device.rows_read) == (False, True, 4)
