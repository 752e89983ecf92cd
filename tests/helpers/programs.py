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


def output_of(isa: str, folder: Path, source: str, *others: str) -> tuple[str, str, int]:
    """Compile `source` in `folder`, run the program, and return its standard output, errors and exit status.

    The other files, whose code is the same for all instruction sets, are compiled once in the folder.
    """
    program = folder / isa
    command = [str(COMPILER), "-std=c++20", "-O1", "-ffp-contract=off", f"-I{ROOT / 'native'}"]
    if SANITIZE:
        command += [f"-fsanitize={SANITIZE}", "-fno-sanitize-recover=all"]
    objects = [folder / f"{Path(other).stem}.o" for other in others]
    for other, made in zip(others, objects, strict=True):
        if not made.exists():
            subprocess.run([*command, "-c", str(ROOT / other), "-o", str(made)], check=True)
    subprocess.run([*command, *FLAGS[isa], str(ROOT / source), *map(str, objects), "-o", str(program)], check=True)
    found = subprocess.run([*RUNNER, str(program)], capture_output=True, text=True, check=False)
    return found.stdout, found.stderr, found.returncode
