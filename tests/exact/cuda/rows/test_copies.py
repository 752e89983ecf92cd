"""First copies of rows are found by hashes: the same ones as by counting.

Without a GPU, Triton's interpreter runs the kernels on the CPU.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.helpers.copies import D, N, copied, counted
from tests.helpers.devices import HAS_TORCH, needs_torch, on_gpu
from tests.helpers.gpu_checks import DEVICE, tensors

pytestmark = [needs_torch]
if HAS_TORCH:
    import torch

    from tonari.exact.cuda.rows import copies
    from tonari.exact.cuda.rows.copies import numbers_of_first_copies


@pytest.mark.parametrize("most", [1, 2, 7, N])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "uint8"])
def test_the_first_copies_are_those_that_counting_finds(dtype: str, most: int) -> None:
    rows = copied(dtype=dtype)
    kept = numbers_of_first_copies(*tensors(DEVICE, rows), most)
    expected = counted(rows, most)
    assert kept is None if len(expected) == N else kept.tolist() == expected


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17])
def test_rows_that_are_all_equal(n: int) -> None:
    kept = numbers_of_first_copies(torch.ones((n, 65), device=DEVICE), 2)
    assert kept is None if n <= 2 else kept.tolist() == [0, 1]


def test_rows_that_differ_in_one_column_are_no_copies() -> None:
    rows = np.ones((200, 200), np.float32)
    np.fill_diagonal(rows, 2.0)
    assert numbers_of_first_copies(*tensors(DEVICE, rows), 1) is None


@pytest.mark.parametrize("columns", [1, 70])
def test_a_hash_that_all_rows_share_makes_no_row_a_copy(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are compared: among rows with equal hashes, only equal ones that are adjacent in the order are copies.

    Rows may differ only in the first of several blocks of columns.
    """
    rows = np.hstack([copied(), np.zeros((N, columns), np.float32)])
    real = copies.launch

    def launch(kernel: Any, programs: int, arguments: Any, **options: Any) -> None:
        if "order_ptr" in arguments:
            real(kernel, programs, arguments, **options)
        else:
            arguments["hashes_ptr"].zero_()

    monkeypatch.setattr(copies, "launch", launch)
    kept = numbers_of_first_copies(*tensors(DEVICE, rows), 1)
    assert set(counted(rows, 1)) <= set(kept.tolist())
    follows = [0] + [i for i in range(1, N) if (rows[i] != rows[i - 1]).any()]
    assert kept.tolist() == follows


@pytest.mark.parametrize("column", [0, 63, 64, 129])
def test_rows_that_take_turns_are_told_apart_by_any_column(column: int) -> None:
    rows = np.ones((40, 130), np.float32)
    rows[1::2, column] = 2.0
    assert numbers_of_first_copies(*tensors(DEVICE, rows), 3).tolist() == list(range(6))


def test_strided_rows() -> None:
    rows = copied(N, 2 * D)
    (wide,) = tensors(DEVICE, rows)
    assert numbers_of_first_copies(wide[:, :D], 2).tolist() == counted(np.ascontiguousarray(rows[:, :D]), 2)


@on_gpu
def test_a_million_rows_of_which_many_are_copies() -> None:
    generator = torch.Generator(DEVICE).manual_seed(0)
    points = torch.randn((10**6, 16), generator=generator, device=DEVICE)
    points[torch.randint(10**6, (400_000,), generator=generator, device=DEVICE)] = points[7].clone()
    kept = numbers_of_first_copies(points, 11)
    copies = (points == points[7]).all(1).nonzero()[:, 0]
    expected = torch.ones(10**6, dtype=torch.bool, device=DEVICE)
    expected[copies[11:]] = False
    assert torch.equal(kept, expected.nonzero()[:, 0])
