"""The device of a call: the device of its arrays, unless the caller names one."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.devices import needs_torch
from tonari.methods.places.place import CpuPlace, place_for

ROWS = np.zeros((3, 2), np.float32)


def test_arrays_in_host_memory_are_searched_on_the_cpu() -> None:
    for device in ["auto", "cpu"]:
        place = place_for(device, queries=ROWS, points=ROWS)
        assert isinstance(place, CpuPlace)
        assert (place.device, place.devices) == ("cpu", ())


@needs_torch
def test_devices_are_a_place_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    from tonari import inputs
    from tonari.methods.places.place_cuda import CudaPlace

    asked = []
    monkeypatch.setattr(inputs, "devices_for", lambda device, **given: asked.append((device, *given)) or ("cuda:1",))
    place = place_for("cuda:1", points=ROWS)
    assert isinstance(place, CudaPlace)
    assert (place.device, place.devices) == ("cuda", ("cuda:1",))
    assert asked == [("cuda:1", "points")]
    assert not place.may_take_fewer


@needs_torch
def test_of_all_devices_that_of_the_arrays_is_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    from tonari import inputs

    devices, places = ("cuda:0", "cuda:1", "cuda:2"), {"queries": "cuda:1", "points": "cuda:1"}
    monkeypatch.setattr(inputs, "devices_for", lambda device, **given: devices)
    monkeypatch.setattr(inputs, "place_of", lambda x, name: places[name])

    def place() -> tuple[tuple[str, ...], bool]:
        made = place_for("cuda:all", queries=ROWS, points=ROWS)
        return made.devices, made.may_take_fewer

    assert place() == (("cuda:1", "cuda:0", "cuda:2"), True)
    assert not place_for(list(devices), queries=ROWS, points=ROWS).may_take_fewer
    places["queries"] = "cuda:2"
    assert place() == (devices, False)
