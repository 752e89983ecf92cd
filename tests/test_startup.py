"""The start of the command line: Ctrl-C before anything runs, and the modules that an import loads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import checks
from tests.helpers.command_line import ENVIRONMENT
from tonari import io

N, M, D, K = 300, 20, 8, 5


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with points.fbin and queries.npy."""
    io.write(tmp_path / "points.fbin", checks.gaussian(N, D, seed=1))
    io.write(tmp_path / "queries.npy", checks.gaussian(M, D, seed=2))
    monkeypatch.chdir(tmp_path)
    return tmp_path


# Sends an interrupt when a module is about to be imported.
INTERRUPTING = """
import os, signal, sys
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["WHEN"]:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
"""


@pytest.mark.process
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("when", ["numpy", "tonari.core._native", "tonari.api", "click", "tonari.cli.commands.info"])
@pytest.mark.parametrize("how", ["-m", "script"])
def test_ctrl_c_while_the_command_line_is_imported(folder: Path, when: str, how: str) -> None:
    (folder / "sitecustomize.py").write_text(INTERRUPTING)
    script = folder / "tonari"  # as pip installs it
    script.write_text("import sys\nfrom tonari.cli import main\nif __name__ == '__main__':\n    sys.exit(main())\n")
    arguments = ["-m", "tonari"] if how == "-m" else [str(script)]
    done = subprocess.run(
        [sys.executable, *arguments, "info", "points.fbin"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=ENVIRONMENT | {"WHEN": when, "PYTHONPATH": os.pathsep.join([str(folder), ENVIRONMENT["PYTHONPATH"]])},
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "tonari: interrupted\n")


@pytest.mark.process
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_a_program_that_imports_the_library_keeps_its_interrupts(folder: Path) -> None:
    code = "import signal, tonari; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=ENVIRONMENT)
    assert done.stdout == "True\n", done.stderr
    (folder / "tonari").write_text(f"from tonari.cli import main\ntry:\n    main(['-h'])\nfinally:\n    {code}\n")
    done = subprocess.run([sys.executable, "tonari"], capture_output=True, text=True, env=ENVIRONMENT)
    assert done.stdout.endswith("True\n"), done.stderr


def _imported(*arguments: str) -> set[str]:
    """Return the modules that a fresh interpreter imports to run these arguments."""
    command = [sys.executable, "-X", "importtime", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, env=ENVIRONMENT)
    return {line.rsplit("|", 1)[1].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}


@pytest.mark.process
def test_importing_the_library_does_not_import_the_command_line() -> None:
    modules = _imported("-c", "import tonari; [getattr(tonari, name) for name in tonari.__all__]")
    assert "tonari.methods.answer" in modules
    assert not {name for name in modules if name.split(".")[0] == "click" or name.startswith("tonari.cli")}
