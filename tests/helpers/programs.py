"""C++ programs that test headers of native/, compiled for one instruction set."""

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
    "neon": ["-DTONARI_NEON=1"],
    "avx512": ["-mavx2", "-mfma", "-mf16c", "-mbmi2", "-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl"],
}
PROGRAM_ISAS = [isa for isa in _native.supported_isas() if isa in FLAGS]
SANITIZE = os.environ.get("TONARI_SANITIZE")  # from CMakeLists.txt, whose sanitizer builds run these tests, too
# The emulator that runs compiled programs, if the compiler in CXX is for another processor.
RUNNER = os.environ.get("TONARI_RUNNER", "").split()
COMPILER = os.environ.get("CXX") or shutil.which("c++") or shutil.which("clang++")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")


def output_of(isa: str, folder: Path, *sources: str) -> tuple[str, str, int]:
    """Compile these files in `folder`, run the program, and return its standard output, errors and exit status."""
    program = folder / isa
    command = [str(COMPILER), "-std=c++20", "-O1", "-ffp-contract=off", *FLAGS[isa], f"-I{ROOT / 'native'}"]
    if SANITIZE:
        command += [f"-fsanitize={SANITIZE}", "-fno-sanitize-recover=all"]
    subprocess.run([*command, *(str(ROOT / source) for source in sources), "-o", str(program)], check=True)
    found = subprocess.run([*RUNNER, str(program)], capture_output=True, text=True, check=False)
    return found.stdout, found.stderr, found.returncode
