"""The facts recorded with a timing: processor, cores, instruction sets, versions, commit, date.

Nothing here imports NumPy: ``pin`` must run before any library starts its threads.
"""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# For each instruction-set level of x86-64: the flags in /proc/cpuinfo that it requires in addition to lower levels.
LEVEL_FLAGS = {
    "generic": (),
    "avx2": ("avx2", "fma", "f16c", "bmi2"),
    "avx512": ("avx512f", "avx512bw", "avx512dq", "avx512vl"),
    "amx": ("amx_tile", "amx_bf16", "amx_int8"),
}


def _cpuinfo(key: str) -> str:
    path = Path("/proc/cpuinfo")
    if path.exists():
        for line in path.read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == key:
                return value.strip()
    return ""


def cpu_name() -> str:
    """Return the processor's name; on Linux with family and model, since virtual machines may report vague names."""
    name = _cpuinfo("model name") or platform.processor() or platform.machine()
    family, model = _cpuinfo("cpu family"), _cpuinfo("model")
    return f"{name} (family {family} model {model})" if family else name


def levels() -> list[str]:
    """Return the instruction-set levels of this processor, lowest first."""
    if "asimd" in _cpuinfo("Features").split():  # the list that Linux has on aarch64
        return ["generic", "neon"]
    flags = set(_cpuinfo("flags").split())
    found = []
    for level, needed in LEVEL_FLAGS.items():
        if not flags.issuperset(needed):
            break
        found.append(level)
    return found


def cores_allowed() -> int:
    """Return the number of cores that this process may use: its affinity, limited by the cgroup's quota."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = Path("/sys/fs/cgroup/cpu.max")
    if quota.exists():
        limit, period = quota.read_text().split()[:2]
        if limit != "max":
            cores = min(cores, max(1, int(limit) // int(period)))
    return cores


def pin(threads: int) -> list[int]:
    """Restrict this process and its children to ``threads`` processors, if possible one per physical core.

    Libraries then cannot use more processors, however they interpret their settings, and two threads never share a core
    while another core is idle. Returns the processors; an empty list if the operating system has no affinity.
    """
    if not hasattr(os, "sched_setaffinity"):
        return []
    allowed = sorted(os.sched_getaffinity(0))
    first_of_core: list[int] = []
    others: list[int] = []
    seen: set[str] = set()
    for processor in allowed:
        siblings = Path(f"/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list")
        core = siblings.read_text().strip() if siblings.exists() else str(processor)
        (others if core in seen else first_of_core).append(processor)
        seen.add(core)
    chosen = (first_of_core + others)[:threads]
    if len(chosen) < threads:
        raise ValueError(f"{threads} threads were asked for, this process may use {len(chosen)} processors")
    os.sched_setaffinity(0, chosen)
    return chosen


def library_versions(libraries: tuple[str, ...]) -> dict[str, str]:
    """Return the versions of Python and of those `libraries` that are installed."""
    found = {"python": platform.python_version()}
    for name in libraries:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            # Without installation, as for tonari in a plain copy or for a missing peer, no version is known.
            continue
    return found


def commit() -> str:
    """Return the short name of the code's commit, with ``+`` if tracked files differ from the commit.

    Outside a git checkout, it is the value of TONARI_COMMIT, or ``unknown`` if that is not set.
    """
    if "TONARI_COMMIT" in os.environ:  # a copy without git, whose commit the caller names
        return os.environ["TONARI_COMMIT"]

    def git(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False)

    try:
        head = git("rev-parse", "--short", "HEAD")
        if head.returncode:
            return "unknown"
        # Changed files of results do not count: the benchmarks write them, and they are not measured code.
        changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!benchmarks/results").stdout
    except FileNotFoundError:
        return "unknown"
    return head.stdout.strip() + ("+" if changed.strip() else "")


def today() -> str:
    """Return the current date and minute in UTC, in ISO 8601 format."""
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%MZ")


def describe(libraries: tuple[str, ...]) -> str:
    """Return the machine, its versions and the date as one line of text, which is printed above the results."""
    versions = ", ".join(f"{name} {number}" for name, number in library_versions(libraries).items())
    return f"{cpu_name()}, {cores_allowed()} cores, {'/'.join(levels())}; {versions}; commit {commit()}; {today()}"
