"""Cases that documents describe in sentences, without a table made from their rows; `prune` keeps these rows."""

from __future__ import annotations

# Pairs of a suite and a shell pattern for names of its cases.
QUOTED: tuple[tuple[str, str], ...] = (
    ("exact_cuda", "screen-attempts"),  # docs/cuda.md, "Variants of the screen"
    ("exact_cuda", "contracted-*"),  # docs/cuda.md, "Fewer dimensions"
    ("exact_cuda", "cold-*"),  # docs/cuda.md, "The first search"
)
