"""Every operation of native/simd against loops over lanes, on every instruction set that this machine has."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tonari.core import _native

ROOT = Path(__file__).parents[2]
FLAGS = {
    "generic": [],
    "avx2": ["-mavx2", "-mfma", "-mf16c", "-mbmi2"],
    "avx512": ["-mavx2", "-mfma", "-mf16c", "-mbmi2", "-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl"],
}
SANITIZE = os.environ.get("TONARI_SANITIZE")  # from CMakeLists.txt, whose sanitizer builds run this test too
COMPILER = os.environ.get("CXX") or shutil.which("c++") or shutil.which("clang++")


@pytest.mark.process
@pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")
@pytest.mark.parametrize("isa", [isa for isa in _native.supported_isas() if isa in FLAGS])
def test_operations_equal_loops_over_lanes(isa: str, tmp_path: Path) -> None:
    program = tmp_path / "native_simd"
    source = ROOT / "tests" / "native" / "simd.cpp"
    command = [str(COMPILER), "-std=c++20", "-O1", "-ffp-contract=off", *FLAGS[isa], f"-I{ROOT / 'native'}"]
    if SANITIZE:
        command += [f"-fsanitize={SANITIZE}", "-fno-sanitize-recover=all"]
    subprocess.run([*command, str(source), "-o", str(program)], check=True)
    found = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    assert (found.stdout, found.stderr, found.returncode) == ("", "", 0)
