"""The members of a group, in kernels; ``groups.py`` says which they are."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def member_column(group, member, GROUP: tl.constexpr, POINT_TILE: tl.constexpr):
    """Column of member number `member` of group number `group`; both broadcast."""
    tl.static_assert(GROUP == 1 or GROUP % 2 == 0)
    tl.static_assert(POINT_TILE % (4 * GROUP) == 0 or GROUP == 1)
    # Bits, not remainders by two: from those of `numbers % GROUP` Triton 3.6 infers that all columns are even, and
    # loads wider than rows are aligned.
    if GROUP == 1:
        return group
    PER_TILE: tl.constexpr = POINT_TILE // GROUP
    tile = group // PER_TILE
    rest = group % PER_TILE
    run = (rest // 4) * (GROUP // 2) + (member >> 1)
    return tile * POINT_TILE + 8 * run + 2 * (rest % 4) + (member & 1)
