"""Queries are divided into blocks, and blocks into batches."""

from __future__ import annotations

from tonari.exact.cpu.blocks import batches, cut_blocks


def test_blocks_cover_all_queries_in_their_order() -> None:
    assert cut_blocks(3, 10, 3) == [(3, 6), (6, 9), (9, 10)]
    assert cut_blocks(3, 3, 3) == []


def test_batches_have_at_most_a_size() -> None:
    blocks = cut_blocks(0, 5, 1)
    assert list(batches(blocks, 2)) == [blocks[:2], blocks[2:4], blocks[4:]]
