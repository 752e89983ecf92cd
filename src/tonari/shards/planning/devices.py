"""Choose the number of devices that share a build, if the caller does not name the devices."""

from __future__ import annotations

from tonari.shards import tuning
from tonari.shards.plan import ShardPlan
from tonari.shards.planning.sizes import Sizes


def devices_for_shards(sizes: Sizes, plan: ShardPlan) -> tuple[int, str]:
    """Return the number of devices that should build all shards' graphs in the shortest time, and the reason as text.

    The devices work in parallel, but one Python process launches the work of all, so a shard takes at least
    SHARED_SECONDS however many devices there are. Other routes than "clusters" use all devices.
    """
    most = len(sizes.devices)
    if plan.route != "clusters":
        return most, f"{most} of {most}: they share the slabs"
    if plan.shards == 1:
        return 1, f"1 of {most}: one shard has all rows"
    each = sizes.descent(plan.rows).seconds
    expected = [plan.shards * max(each / count, tuning.SHARED_SECONDS) for count in range(1, most + 1)]
    count = expected.index(min(expected)) + 1
    words = ", ".join(f"{seconds:.3g} s on {at}" for at, seconds in enumerate(expected, 1))
    return count, f"{count} of {most}: the graphs of the shards are expected to take {words}"
