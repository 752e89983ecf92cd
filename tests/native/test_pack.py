"""Packing, compared with plain loops: the same bits with every instruction set of this machine."""

from pathlib import Path

import pytest

from tests.helpers.programs import PROGRAM_ISAS, needs_compiler, output_of


@pytest.mark.process
@needs_compiler
def test_loops_equal_plain_loops_and_have_the_same_bits(tmp_path: Path) -> None:
    found = [
        output_of(isa, tmp_path, "tests/native/pack.cpp", "native/exact/form.cpp", "native/core/rows.cpp")
        for isa in PROGRAM_ISAS
    ]
    assert [(text.partition(" ")[0], errors, status) for text, errors, status in found] == [("bits", "", 0)] * len(
        found
    ), found
    assert len({text for text, _, _ in found}) == 1
