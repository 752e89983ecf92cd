"""Cases whose rows documents describe in words, outside of any table that is written from rows."""

from __future__ import annotations

# Suite, and a shell pattern of cases.
QUOTED: tuple[tuple[str, str], ...] = (
    ("exact_cuda", "screen-attempts"),  # docs/gpu.md, "Variants of the screen"
    ("exact_cuda", "contracted-*"),  # docs/gpu.md, points in fewer columns
    ("exact_cuda", "cold-*"),  # docs/gpu.md, first calls
)
