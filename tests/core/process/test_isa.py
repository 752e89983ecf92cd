"""The instruction set of the CPU kernels."""

from __future__ import annotations

import pytest

from tonari.core._native import supported_isas
from tonari.core.process.isa import check_isa, chosen_isa, without_amx


def test_the_widest_unless_the_environment_names_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TONARI_ISA", raising=False)
    assert chosen_isa() == supported_isas()[-1]
    for isa in supported_isas():
        monkeypatch.setenv("TONARI_ISA", isa)
        assert chosen_isa() == isa


@pytest.mark.parametrize("isa", ["sse9", "", "AVX2"])
def test_one_that_is_not_there_is_refused(isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    message = f"cannot run the instruction set {isa!r}; it can run generic"
    with pytest.raises(ValueError, match=message):
        check_isa(isa)
    monkeypatch.setenv("TONARI_ISA", isa)
    with pytest.raises(ValueError, match=message):
        chosen_isa()


def test_kernels_without_amx_use_avx512_in_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tonari.core.process.isa._native.supported_isas", lambda: ["generic", "avx512", "amx"])
    monkeypatch.delenv("TONARI_ISA", raising=False)
    assert [without_amx(asked) for asked in (None, "amx", "generic")] == ["avx512", "avx512", "generic"]
    with pytest.raises(ValueError, match="cannot run the instruction set 'neon'"):
        without_amx("neon")
