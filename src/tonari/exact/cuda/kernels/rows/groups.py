"""The members of a group, for use in kernels; ``rows/groups.py`` defines them."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def member_column(group, member, GROUP: tl.constexpr, POINT_TILE: tl.constexpr):
    """Return the column of the point that is member `member` of group `group`; the arguments must broadcast."""
    tl.static_assert(GROUP == 1 or GROUP % 2 == 0)
    tl.static_assert(POINT_TILE % (4 * GROUP) == 0 or GROUP == 1)
    # Shifts and masks instead of divisions: from remainders of `numbers % GROUP`, Triton 3.6 wrongly infers that all
    # columns are even, and emits loads that are wider than the alignment of rows.
    if GROUP == 1:
        return group
    PER_TILE: tl.constexpr = POINT_TILE // GROUP
    tile = group // PER_TILE
    rest = group % PER_TILE
    run = (rest // 4) * (GROUP // 2) + (member >> 1)
    return tile * POINT_TILE + 8 * run + 2 * (rest % 4) + (member & 1)


@triton.jit
def part_number(group, part):
    """Return the group number of a part, if each part (a quarter of a group) counts as a group of its own."""
    return (group // 4) * 16 + 4 * part + group % 4
