"""Every operation of native/simd, compared with loops over lanes, with every instruction set of this machine."""

from pathlib import Path

import pytest

from tests.helpers.programs import PROGRAM_ISAS, needs_compiler, output_of


@pytest.mark.process
@needs_compiler
@pytest.mark.parametrize("isa", PROGRAM_ISAS)
def test_operations_equal_loops_over_lanes(isa: str, tmp_path: Path) -> None:
    assert output_of(isa, tmp_path, "tests/native/simd.cpp") == ("", "", 0)
