"""Functions take few parameters; arguments that belong together are passed as a record.

Exceptions are public functions, lookalikes of other libraries, whose parameters are fixed, and kernels, whose
parameters are pointers and sizes.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import tonari

SOURCES = Path(__file__).parents[1] / "src" / "tonari"
MOST = 8  # number of parameters of a function
OF_USERS = {"api", "compat", "estimators"}  # folders whose functions users call, unless the names begin with _
METHODS_OF_USERS = {"graph/changing.py"}  # and files with methods of a public class

# Functions with more parameters. The list may only become shorter: the test fails for one that is gone, or has fewer.
LONG = {
    "metrics/problem.py:make_problem": 13,
}


def functions_of(tree: ast.AST, within: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """Return functions with the names of the classes and functions that contain them."""
    for node in ast.iter_child_nodes(tree):
        name = f"{within}{node.name}" if isinstance(node, ast.FunctionDef | ast.ClassDef) else within.rstrip(".")
        if isinstance(node, ast.FunctionDef):
            yield name, node
        yield from functions_of(node, f"{name}." if name else "")


def parameters_of(function: ast.FunctionDef) -> int:
    """Return parameters without self and cls."""
    given = function.args
    names = [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def is_of_users(path: Path, name: str, function: ast.FunctionDef) -> bool:
    last = name.rsplit(".", maxsplit=1)[-1]
    of_users = path.parts[0] in OF_USERS or path.as_posix() in METHODS_OF_USERS
    if of_users and (not last.startswith("_") or last == "__init__"):
        return True
    is_command = any(
        isinstance(one, ast.Call) and "command" in ast.unparse(one.func) for one in function.decorator_list
    )
    return name in tonari.__all__ or is_command


def test_functions_take_few_parameters() -> None:
    found = {}
    for file in sorted(SOURCES.rglob("*.py")):
        path = file.relative_to(SOURCES)
        if "kernels" in path.parts:
            continue
        for name, function in functions_of(ast.parse(file.read_text())):
            count = parameters_of(function)
            if count > MOST and not is_of_users(path, name, function):
                found[f"{path.as_posix()}:{name}"] = count
    longer = {name: count for name, count in found.items() if count > LONG.get(name, MOST)}
    assert not longer, f"more than {MOST} parameters, make a record of those that belong together: {longer}"
    shorter = {name: count for name, count in LONG.items() if found.get(name, 0) < count}
    assert not shorter, f"gone or shorter, which the list has to say: {shorter}"
