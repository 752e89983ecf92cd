"""Calls of the command line in this process."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from click.testing import CliRunner, Result

from tonari.cli import main

# With absolute paths, a process that starts in another directory imports the same package.
ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def run(*arguments: str, code: int = 0) -> Result:
    """Run the command tonari with these arguments in this process, and check its exit code."""
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == code, (result.exit_code, result.stdout, result.stderr)
    return result


def refused(*arguments: str, code: int) -> str:
    """Run a command that must fail, and return its only line on stderr; stdout must be empty."""
    result = run(*arguments, code=code)
    assert result.stdout == ""
    assert result.stderr.startswith("tonari: error: ")
    assert result.stderr.count("\n") == 1, result.stderr
    return result.stderr


def as_json(*arguments: str) -> Any:
    """Run a command whose stdout must be one JSON value, and return that value."""
    return json.loads(run(*arguments, "--json").stdout)
