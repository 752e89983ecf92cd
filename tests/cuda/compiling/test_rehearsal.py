"""Work on tensors without data: stand-ins for a GPU, and results with the shapes of real ones."""

from __future__ import annotations

from typing import Any

import pytest

from tests.helpers.devices import HAS_TORCH, needs_torch
from tonari.cuda.compiling import rehearsal
from tonari.cuda.compiling.rehearsal import Call, Card, note, rehearsed_card, rehearsing, to_visit

if HAS_TORCH:
    import torch

HOPPER, AMPERE = Card((9, 0), 132), Card((8, 0), 108)


def call(variant: Any) -> Call:
    return Call(None, {}, {}, {}, (variant,))


def test_each_variant_is_noted_once_in_the_order_of_its_first_launch() -> None:
    with rehearsing(HOPPER) as noted:
        for variant in ("b", "a", "b"):
            note(call(variant))
    assert [one.variant for one in noted.calls.values()] == [("b",), ("a",)]


def test_a_rehearsal_within_another_has_its_own_card_and_launches() -> None:
    with rehearsing(HOPPER) as outer:
        with rehearsing(AMPERE) as inner:
            assert rehearsed_card() is AMPERE
            note(call("x"))
        assert rehearsed_card() is HOPPER
    assert (len(outer.calls), len(inner.calls)) == (0, 1)
    assert (HOPPER.is_hopper, AMPERE.is_hopper) == (True, False)


def test_outside_of_a_rehearsal_there_is_nothing_to_search() -> None:
    with pytest.raises(ZeroDivisionError), rehearsing(HOPPER):
        raise ZeroDivisionError
    for ask in (rehearsed_card, lambda: note(call("x"))):
        with pytest.raises(RuntimeError, match="have no data to search"):
            ask()


@needs_torch
def test_of_many_parts_the_first_two_and_the_last_stand_for_all() -> None:
    parts = [slice(at, at + 1) for at in range(5)]
    assert to_visit(parts, torch.device("cpu")) == parts
    assert to_visit(parts, torch.device("meta")) == [parts[0], parts[1], parts[4]]
    assert to_visit(parts[:2], torch.device("meta")) == parts[:2]


@needs_torch
def test_without_data_results_have_the_shapes_and_types_of_those_with_data() -> None:
    cases: list[Any] = [
        ("order_of", ()),
        ("each_repeated", (3,)),
        ("all_repeated", (3,)),
    ]
    for name, given in cases:
        rows = torch.tensor([[3.0, 1.0], [2.0, 2.0]]) if given else torch.tensor([3.0, 1.0, 3.0, 2.0])
        real, bare = (getattr(rehearsal, name)(each, *given) for each in (rows, rehearsal.without_data(rows)))
        assert (real.shape, real.dtype) == (bare.shape, bare.dtype)
        assert bare.device.type == "meta"


@needs_torch
def test_with_data_results_are_those_of_torch() -> None:
    keys = torch.tensor([3.0, 1.0, 3.0, 2.0])
    assert rehearsal.order_of(keys).tolist() == [1, 3, 0, 2]
    assert rehearsal.numbers_from(4, 3, "cpu").tolist() == [4, 5, 6]
    assert rehearsal.numbers_from(4, 3, "meta").shape == (3,)
    rows = keys.reshape(2, 2)
    assert rehearsal.each_repeated(rows, 2).tolist() == [[3, 1], [3, 1], [3, 2], [3, 2]]
    assert rehearsal.all_repeated(rows, 2).tolist() == [[3, 1], [3, 2], [3, 1], [3, 2]]
    strided = rehearsal.without_data(rows.T)
    assert (strided.shape, strided.stride(), strided.dtype) == (rows.T.shape, rows.T.stride(), rows.dtype)
    assert rehearsal.without_data(None) is None
