"""The garbage collector inside and after a context."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from tonari.core.process.garbage import collection_off


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    before = gc.isenabled()
    yield
    (gc.enable if before else gc.disable)()


@pytest.mark.parametrize("before", [True, False])
def test_the_collector_is_off_within_and_as_before_after(before: bool) -> None:
    (gc.enable if before else gc.disable)()
    with collection_off():
        assert not gc.isenabled()
    assert gc.isenabled() is before


def test_the_collector_is_on_again_after_an_error() -> None:
    gc.enable()
    with pytest.raises(RuntimeError), collection_off():
        raise RuntimeError
    assert gc.isenabled()
