"""Launches of kernel variants that this process has compiled, and of variants that it has not."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest

from tests.helpers.devices import HAS_TORCH, needs_torch

pytestmark = needs_torch
if HAS_TORCH:
    import torch

    from tonari.cuda.compiling.rehearsal import Call, Card, rehearsing

    launching = importlib.import_module("tonari.cuda.launch")


class Kernel:
    """Stands for a compiled kernel, and counts the launches of each kind."""

    device_caches: Any = None
    arg_names = ("x_ptr", "n", "BLOCK")

    def __init__(self) -> None:
        def copy_kernel(x_ptr: Any, n: int, BLOCK: constexpr) -> None:  # type: ignore[name-defined] # noqa: F821
            """Annotated like Triton's functions."""

        self.fn = copy_kernel
        self.by_triton, self.by_variant = 0, 0

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., Any]:
        def compiled(**given: Any) -> dict[Any, Any]:
            self.by_triton += 1

            def variant(*given: Any, stream: int | None = None) -> None:
                self.by_variant += 1

            return {(1, 1, 1): variant}

        return compiled


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    """Record the calls for which other kernels may be compiled, too."""
    found: list[Call] = []
    monkeypatch.setattr(launching, "prepare_for", lambda call, device: found.append(call))
    monkeypatch.setattr(launching, "_compiled", {})
    return found


def launch(kernel: Any, n: int, device: str = "cpu") -> None:
    launching.launch(kernel, 1, {"x_ptr": torch.empty(64, device=device), "n": n}, constants={"BLOCK": 4}, warps=1)


def test_checks_for_overflow_are_not_translated() -> None:
    """Triton would check every addition of int32, and drop the checks unless it debugs."""
    with rehearsing(Card((9, 0), 132)) as rehearsal:
        launch(Kernel(), 5, "meta")
    (call,) = rehearsal.calls.values()
    assert call.options["sanitize_overflow"] is False


def test_only_a_variant_that_is_missing_is_prepared_for(asked: list[Call]) -> None:
    """All other launches, such as those of a repeated search, do not look for expected kernels."""
    kernel = Kernel()
    for _ in range(3):
        launch(kernel, 16)
    assert len(asked) == 1
    assert (kernel.by_triton, kernel.by_variant) == (1, 2)
    launch(kernel, 17)
    assert [call.arguments["n"] for call in asked] == [16, 17]
    assert asked[0].variant != asked[1].variant


def test_a_launch_without_data_is_noted_alone(asked: list[Call]) -> None:
    kernel = Kernel()
    with rehearsing(Card((9, 0), 132)) as rehearsal:
        launch(kernel, 16, "meta")
        launch(kernel, 32, "meta")
    assert (kernel.by_triton, asked) == (0, [])
    launch(kernel, 16)
    assert (kernel.by_triton, kernel.by_variant) == (1, 0)
    assert list(rehearsal.calls) == [call.variant for call in asked]


class KernelOfTwo(Kernel):
    """A kernel that reads one tensor and writes another."""

    arg_names = ("x_ptr", "n", "y_ptr", "BLOCK")

    def __init__(self) -> None:
        super().__init__()

        def copy_kernel(x_ptr: Any, n: int, y_ptr: Any, BLOCK: constexpr) -> None:  # type: ignore[name-defined] # noqa: F821
            """Annotated like Triton's functions."""

        self.fn = copy_kernel


def test_a_repeated_launch_looks_nothing_up(asked: list[Call], monkeypatch: pytest.MonkeyPatch) -> None:
    """It launches the variant of the previous launch with other addresses for the tensors that changed."""
    kernel, given = KernelOfTwo(), []
    first, x, y, z = (torch.zeros(64) for _ in range(4))
    made = launching.Launch(kernel, 1, {"x_ptr": first, "n": 5, "y_ptr": y}, constants={"BLOCK": 4}, warps=1)
    with pytest.raises(KeyError):
        made.repeated("x_ptr")
    made()
    ((key, _),) = launching._compiled.items()
    launching._compiled[key] = {(1, 1, 1): lambda *these, stream: given.append((stream, *these))}
    again, both = made.repeated("y_ptr"), made.repeated("y_ptr", "x_ptr")
    monkeypatch.setattr(launching, "_compiled", {})
    again(7, z)
    both(8, z, x)
    both(9, y, z)
    expected = [(7, first, 5, z, 4), (8, x, 5, z, 4), (9, z, 5, y, 4)]
    assert given == [(to, one.data_ptr(), n, other.data_ptr(), size) for to, one, n, other, size in expected]
    with pytest.raises(ValueError, match="shorter"):
        both(0, z)
    assert (len(asked), kernel.by_triton) == (1, 1)


@pytest.mark.parametrize("options", [{"warps": 2}, {"warps": 1, "registers": 64}, {"warps": 1, "fused": False}])
def test_a_repeated_launch_has_the_options_of_its_own(asked: list[Call], options: dict[str, Any]) -> None:
    kernel = Kernel()
    for chosen in ({"warps": 1}, options):
        made = launching.Launch(kernel, 1, {"x_ptr": torch.zeros(64), "n": 5}, constants={"BLOCK": 4}, **chosen)
        made()
        made.repeated("x_ptr")(0, torch.zeros(64))
    assert (kernel.by_triton, kernel.by_variant, len(launching._compiled)) == (2, 2, 2)
