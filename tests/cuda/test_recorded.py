"""Launches that are captured as a CUDA graph."""

from __future__ import annotations

from tests.helpers.devices import HAS_TORCH, on_gpu

if HAS_TORCH:
    import torch

    from tonari.cuda.recorded import record


@on_gpu
def test_launches_are_repeated_with_new_values_but_not_made_at_once() -> None:
    device = torch.device("cuda", 0)
    given, seen = torch.zeros(3, device=device), torch.zeros(3, device=device)
    graph, twice = record(lambda: (seen.add_(1), given * 2)[1], device)
    assert seen.tolist() == [0, 0, 0]
    for value in (1.0, 2.0):
        given.fill_(value)
        graph.replay()
        assert twice.tolist() == [2 * value] * 3
    assert seen.tolist() == [2, 2, 2]
