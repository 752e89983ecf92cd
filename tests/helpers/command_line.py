"""Calls of the command line in this process."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from click.testing import CliRunner, Result

from tonari.cli import main

# A process that starts in another directory finds the same package, also through a relative PYTHONPATH.
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def run(*arguments: str, code: int = 0) -> Result:
    """Call tonari, and check its exit code."""
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == code, (result.exit_code, result.stdout, result.stderr)
    return result


def refused(*arguments: str, code: int) -> str:
    """Return the only line on stderr, after checking that stdout is empty."""
    result = run(*arguments, code=code)
    assert result.stdout == ""
    assert result.stderr.startswith("tonari: error: ")
    assert result.stderr.count("\n") == 1, result.stderr
    return result.stderr


def as_json(*arguments: str) -> Any:
    """Return the content of stdout, which must be JSON alone."""
    return json.loads(run(*arguments, "--json").stdout)
