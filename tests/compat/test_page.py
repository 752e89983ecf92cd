"""The examples of docs/compat.md run, and the page names every argument of the lookalikes."""

from __future__ import annotations

import doctest
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

PAGE = Path(__file__).parents[2] / "docs" / "compat.md"
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL))
NEEDS = {
    "scikit-learn": "sklearn",
    "SciPy": "numpy",
    "FAISS": "numpy",
    "PyTorch Geometric": "torch",
    "sentence-transformers": "numpy",
    "PyTorch3D": "torch",
    "astropy": "numpy",
    "pynndescent": "numpy",
}
MODULES = {
    "SciPy": "scipy",
    "FAISS": "faiss",
    "PyTorch Geometric": "pyg",
    "sentence-transformers": "sentence_transformers",
    "PyTorch3D": "pytorch3d",
    "astropy": "astropy",
}


@pytest.mark.parametrize("section", NEEDS)
def test_examples_of_the_page_run(section: str) -> None:
    held: dict[str, Any] = {"np": np}
    library = pytest.importorskip(NEEDS[section])
    held |= {"torch": library} if NEEDS[section] == "torch" else {}
    examples = re.findall(r"^```pycon\n(.*?)^```", SECTIONS[section], re.MULTILINE | re.DOTALL)
    assert examples
    test = doctest.DocTestParser().get_doctest("".join(examples), held, section, str(PAGE), 0)
    said: list[str] = []
    assert doctest.DocTestRunner().run(test, out=said.append).failed == 0, "".join(said)


def test_every_section_has_an_example() -> None:
    assert set(SECTIONS) == set(NEEDS)


@pytest.mark.parametrize("section", MODULES)
def test_every_argument_is_on_the_page(section: str) -> None:
    module = importlib.import_module(f"tonari.compat.{MODULES[section]}")
    names: set[str] = set()
    for thing in (getattr(module, name) for name in module.__all__):
        if not callable(thing) or (isinstance(thing, type) and issubclass(thing, tuple)):
            continue  # a number of FAISS, or a result
        own = vars(thing) | vars(thing.__base__) if inspect.isclass(thing) else {thing.__name__: thing}
        public = {name: value for name, value in own.items() if not name.startswith("_")}
        names |= public.keys()
        for each in (thing, *filter(inspect.isfunction, public.values())):
            names |= inspect.signature(each).parameters.keys()
    text = " ".join(re.findall(r"`[^`\n]+`", SECTIONS[section]))
    assert {name for name in names - {"self"} if not re.search(rf"\b{name}\b", text)} == set()


@pytest.mark.process
def test_importing_tonari_imports_no_lookalike() -> None:
    code = "import sys, tonari; print([name for name in sys.modules if name.startswith('tonari.compat')])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
    code = "import sys\nfor name in ('astropy', 'faiss', 'pyg', 'pytorch3d', 'scipy', 'sentence_transformers'):\n"
    code += "    __import__('tonari.compat.' + name)\n"
    code += "others = 'astropy', 'torch', 'scipy', 'faiss', 'sentence_transformers'\n"
    code += "print([name for name in others if name in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
