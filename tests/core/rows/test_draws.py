"""Random numbers: one stream for each purpose, and no other generator anywhere."""

from __future__ import annotations

import ast
import itertools
import re
from pathlib import Path

import numpy as np
import pytest

import tonari
from tonari.core.rows.draws import Purpose, derived_seed, generator

SOURCES = Path(tonari.__file__).parent
MAKERS = {"default_rng", "Generator", "manual_seed", "RandomState", "SeedSequence", "randperm", "randint", "randn"}


@pytest.mark.parametrize("seed", [0, 1, 2**32 - 1, 2**40])
def test_draws_for_different_purposes_share_no_more_than_chance(seed: int) -> None:
    drawn = [generator(seed, purpose).choice(10_000, 1000, replace=False) for purpose in Purpose]
    for one, other in itertools.combinations(drawn, 2):
        assert 50 < np.isin(one, other).sum() < 150  # 100 expected, with a standard deviation of 9


def test_derived_seeds_are_unsigned_32_bit_integers_of_their_own() -> None:
    asked = list(itertools.product((0, 1, 2**32 - 1), Purpose, range(3)))
    seeds = [derived_seed(*one) for one in asked]
    assert len(set(seeds)) == len(asked)
    assert all(0 <= seed < 2**32 for seed in seeds)
    assert seeds == [derived_seed(*one) for one in asked]


def test_all_random_numbers_come_from_a_named_stream() -> None:
    """Every generator is made or seeded in draws.py, or seeds torch by a number that draws.py derives."""
    found = []
    for path in SOURCES.rglob("*.py"):
        text = path.read_text()
        if path.name == "draws.py" or not any(maker in text for maker in MAKERS):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MAKERS:
                found.append((path.relative_to(SOURCES).as_posix(), ast.unparse(node)))
    assert found
    for path, text in found:
        seeded = re.fullmatch(r"torch\.Generator\(device=[\w.]+\)(\.manual_seed\(derived_seed\(.*\)\))?", text)
        assert seeded or re.search(r"^torch\..*generator=\w+", text), (path, text)
