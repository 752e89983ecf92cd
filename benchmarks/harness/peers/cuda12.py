"""Run a peer that is linked with the libraries of CUDA 12 on a machine that has only those of CUDA 13.

    python -m benchmarks.harness.peers.cuda12 FOLDER

FOLDER has the unpacked wheels of certex and of what it needs: libcuvs-cu12, librmm-cu12, libkvikio-cu12 and
rapids-logger. For each library of CUDA 12 that they call, this writes a library of that name into FOLDER/shim, with all
functions that they call. Each function jumps to the function of the same name in CUDA 13, whose arguments are the same.
FOLDER/libcuvs/__init__.py is replaced by a module that loads all of them in order. After that, on the other machine:

    export PYTHONPATH=$PYTHONPATH:FOLDER LD_LIBRARY_PATH=FOLDER/shim:FOLDER/libcuvs_cu12.libs:FOLDER/libkvikio_cu12.libs

It needs gcc and nm (binutils), on x86-64.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

# Names in CUDA 12 and in CUDA 13. cuSPARSE and cuRAND have the same names in both.
LIBRARIES = {
    "libcublasLt.so.12": "libcublasLt.so.13",
    "libcublas.so.12": "libcublas.so.13",
    "libcusolver.so.11": "libcusolver.so.12",
    "libnvJitLink.so.12": "libnvJitLink.so.13",
    "libnvrtc.so.12": "libnvrtc.so.13",
}
UNCHANGED = ("libcusparse.so.12", "libcurand.so.10", "libnccl.so.2")
CALLED = re.compile(r" U (\w+)@+(\S+)$", re.MULTILINE)
VERSION = re.compile(r"_12_\d+$")  # part of the names of nvJitLink's functions
PEERS = (
    "rapids_logger/lib64/librapids_logger.so",
    "librmm/lib64/librmm.so",
    "libkvikio/lib64/libkvikio.so",
    "libcuvs/lib64/libcuvs.so",
    "certex/libcertex_cuvs.so",
)
LOADER = """import ctypes, glob, importlib.util, os

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def load_library():
    import torch  # loads the libraries of CUDA 13 that it needs

    spec = importlib.util.find_spec("nvidia")
    folders = spec.submodule_search_locations if spec else []
    files = [file for folder in folders for file in glob.glob(os.path.join(folder, "*", "lib", "*.so*"))]
    found = {{os.path.basename(file): file for file in files}}
    for name in {theirs!r}:
        ctypes.CDLL(found.get(name, name), mode=ctypes.RTLD_GLOBAL)
    for name in {ours!r}:
        ctypes.CDLL(os.path.join(ROOT, name), mode=ctypes.RTLD_GLOBAL)
"""


def called(libraries: Iterable[Path]) -> dict[str, list[str]]:
    """Return, for each library of CUDA 12, the functions in it that some libraries call."""
    found: dict[str, set[str]] = {name: set() for name in LIBRARIES}
    for library in libraries:
        symbols = subprocess.run(["nm", "-D", library], capture_output=True, text=True, check=True).stdout
        for function, version in CALLED.findall(symbols):
            if version in found:
                found[version].add(function)
    return {name: sorted(functions) for name, functions in found.items()}


def source(target: str, functions: list[str]) -> str:
    """Return C code in which each function jumps to the function of the same name in the library `target`."""
    rows = ", ".join(f'"{VERSION.sub("_13_0", name)}"' for name in functions)
    jumps = "\n".join(
        f"__attribute__((naked)) void {name}(void) "
        f'{{ __asm__ volatile("movq %0, %%r11\\n\\tjmp *%%r11" :: "m"(table[{i}])); }}'
        for i, name in enumerate(functions)
    )
    return f"""#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
static const char *names[] = {{{rows or '""'}}};
static void *table[{max(1, len(functions))}];
__attribute__((constructor)) static void fill(void) {{
  void *library = dlopen("{target}", RTLD_NOW | RTLD_GLOBAL);
  if (!library) {{ fprintf(stderr, "%s\\n", dlerror()); return; }}
  for (int i = 0; i < {len(functions)}; ++i)
    if (!(table[i] = dlsym(library, names[i]))) fprintf(stderr, "{target} lacks %s\\n", names[i]);
}}
{jumps}
"""


def make_shim(folder: Path, name: str, target: str, functions: list[str]) -> None:
    """Compile the library `name`, whose functions are those of `target`, with the version that its callers expect."""
    code, versions = folder / f"{name}.c", folder / f"{name}.map"
    code.write_text(source(target, functions))
    versions.write_text(f"{name} {{ global: *; }};\n")
    command = ["gcc", "-O1", "-shared", "-fPIC", code, "-o", folder / name, f"-Wl,-soname,{name}"]
    subprocess.run([*command, f"-Wl,--version-script,{versions}", "-ldl"], check=True)
    code.unlink()
    versions.unlink()


def main(folder: Path) -> None:
    """Make all shims, and the module that loads them."""
    peers = [folder / name for name in PEERS]
    shims = folder / "shim"
    shims.mkdir(exist_ok=True)
    for name, functions in called([*peers, *folder.glob("certex/_core*.so")]).items():
        make_shim(shims, name, LIBRARIES[name], functions)
        print(f"{name}: {len(functions)} functions")
    ours = (*(f"shim/{name}" for name in LIBRARIES), *PEERS)
    loader = LOADER.format(theirs=(*LIBRARIES.values(), *UNCHANGED), ours=ours)
    (folder / "libcuvs" / "__init__.py").write_text(loader)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
