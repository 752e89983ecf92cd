"""``python -m tonari.debug`` prints the facts for a bug report, and continues if some are not available.

    tonari      version, commit if it is known, and the path of the import
    python      the interpreter
    packages    versions, from their metadata
    system      operating system, processor, memory
    cpu         instruction sets, threads, and environment variables that change them
    cuda        torch's build, the driver, each device; torch is imported only if it and Triton are installed
    plans       `tonari.explain` for a small graph, on the CPU and on each CUDA device

If a fact is not available, the text of the exception is printed in its place.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from tonari.api.planning.explain import Explanation, explain
from tonari.core import _native
from tonari.core.process.isa import chosen_isa
from tonari.core.process.workers import default_threads
from tonari.core.version import __version__

__all__ = ["facts"]

PACKAGES = ("numpy", "click", "tqdm", "torch", "triton", "scipy", "h5py", "ml_dtypes")
VARIABLES = ("TONARI_", "OMP_", "CUDA_", "TRITON_")  # prefixes of the environment variables that are shown
N, D, K = 10_000, 64, 10  # sizes of the graph that is planned
_PACKAGE = Path(__file__).resolve().parent
_SECONDS = 10  # longest run of another program


def facts() -> dict[str, Any]:
    """Collect the facts for a bug report.

    Returns
    -------
    dict
        Plain values for JSON, by section; facts that are not available are ``{"missing": reason}``.

    Examples
    --------
    >>> from tonari.debug import facts
    >>> list(facts())
    ['tonari', 'python', 'packages', 'system', 'cpu', 'cuda', 'plans']
    """
    return {name: _plain(section) for name, section in _sections()}


def _sections() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the sections by name, each collected on demand: if one crashes, earlier ones have been printed."""
    yield "tonari", {"version": __version__, "commit": _try(_commit), "path": str(_PACKAGE)}
    yield (
        "python",
        {
            "version": platform.python_version(),
            "implementation": platform.python_implementation(),
            "executable": sys.executable,
        },
    )
    yield "packages", {name: _try(_version, name) for name in PACKAGES}
    yield (
        "system",
        {
            "os": platform.platform(),
            "processor": _try(_processor),
            "memory": _try(_memory),
        },
    )
    yield (
        "cpu",
        {
            "instruction_sets": _native.supported_isas(),
            "instruction_set": _try(chosen_isa),
            "threads": _try(default_threads),
            "processors": os.cpu_count(),
            "environment": {name: value for name, value in sorted(os.environ.items()) if name.startswith(VARIABLES)},
        },
    )
    cuda = _try(_cuda)
    yield "cuda", cuda
    devices = ["cpu", *cuda.get("devices", {})]
    yield "plans", {device: _try(_planned, device) for device in devices}


def _try(ask: Callable[..., Any], *given: Any) -> Any:
    """Return the result of a function, or the reason for its failure."""
    try:
        return ask(*given)
    except Exception as error:
        return {"missing": f"{type(error).__name__}: {error}"}


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _commit() -> str:
    """Return the commit of the imported checkout, or the commit that pip recorded at installation."""
    root = _PACKAGE.parents[1]
    if (root / ".git").exists():
        changed = _said_by("git", "-C", str(root), "status", "--porcelain", "--untracked-files=no")
        return _said_by("git", "-C", str(root), "rev-parse", "HEAD") + (", changed" if changed else "")
    origin = json.loads(importlib.metadata.distribution("tonari").read_text("direct_url.json") or "{}")
    commit: str = origin.get("vcs_info", {}).get("commit_id", "not recorded by the installation")
    return commit


def _processor() -> str:
    listed = Path("/proc/cpuinfo")
    if listed.exists():
        for line in listed.read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    if sys.platform == "darwin":
        return _said_by("sysctl", "-n", "machdep.cpu.brand_string")
    return platform.processor() or platform.machine()


def _memory() -> str:
    sizes = {}
    for line in Path("/proc/meminfo").read_text().splitlines():
        name, _, value = line.partition(":")
        sizes[name] = value.split()[0]
    return _of_memory(int(sizes["MemAvailable"]) << 10, int(sizes["MemTotal"]) << 10)


def _cuda() -> dict[str, Any]:
    """Return the facts about CUDA, or the reason why tonari cannot use it."""
    absent = [name for name in ("torch", "triton") if _version(name) == "not installed"]
    if absent:
        return {"missing": f"{' and '.join(absent)} not installed: pip install 'tonari[gpu]'"}
    torch = importlib.import_module("torch")
    importlib.import_module("triton")
    found: dict[str, Any] = {"toolkit": torch.version.cuda or "none: torch is built without CUDA"}
    if torch.cuda.is_available():
        found["driver"] = _try(_driver)
        count = torch.cuda.device_count()
        found["devices"] = {f"cuda:{number}": _try(_device, torch, number) for number in range(count)}
    else:
        found["devices"] = {}
    return found


def _device(torch: Any, number: int) -> dict[str, Any]:
    properties = torch.cuda.get_device_properties(number)
    return {
        "name": properties.name,
        "capability": f"{properties.major}.{properties.minor}",
        "multiprocessors": properties.multi_processor_count,
        "memory": _try(_device_memory, torch, number),
    }


def _device_memory(torch: Any, number: int) -> str:
    return _of_memory(*torch.cuda.mem_get_info(number))


def _driver() -> str:
    return _said_by("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader").splitlines()[0]


def _planned(device: str) -> Explanation:
    return explain(None, (N, D), K, device=device)


def _said_by(*command: str) -> str:
    """Return the output of a program."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    if done.returncode:
        raise OSError(f"{command[0]} ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout.strip()


def _of_memory(free: int, total: int) -> str:
    return f"{free / 1e9:.1f} GB free of {total / 1e9:.1f} GB"


def _plain(value: Any) -> Any:
    if isinstance(value, Explanation):
        return value.as_dict()
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return value


def _lines(section: dict[str, Any], indent: str) -> Iterator[str]:
    """A section for human readers."""
    width = max(map(len, section), default=0)
    for name, value in section.items():
        if isinstance(value, dict) and list(value) != ["missing"]:
            yield f"{indent}{name}" if value else f"{indent}{name:<{width}}  none"
            yield from _lines(value, indent + "  ")
        elif isinstance(value, Explanation):
            yield f"{indent}{name}, graph of {N:,} x {D}, k={K}"
            yield from (f"{indent}{line}" for line in str(value).splitlines())
        else:
            yield f"{indent}{name:<{width}}  {_text(value)}"


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return f"missing: {value['missing']}"
    return ", ".join(value) if isinstance(value, list) else str(value)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def main(as_json: bool) -> None:
    """Print the facts for a bug report about tonari: versions, processor, devices, and a small plan on each."""
    if as_json:
        click.echo(json.dumps(facts(), indent=2))
        return
    for name, section in _sections():
        click.echo("\n".join([name, *_lines(section, "  ")]))


if __name__ == "__main__":
    main(prog_name="python -m tonari.debug")
