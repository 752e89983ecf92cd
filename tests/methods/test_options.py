"""Shared options: public functions list them, describe them, and refuse all others."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

import tonari
from tonari.methods.options import COLUMNS, Options, PlaceOptions, SearchOptions, columns_of, shares

if TYPE_CHECKING:
    from typing_extensions import Unpack

METHODS = [tonari.Index.search, tonari.Index.radius_search, tonari.Index.radius_count]
METHODS += [tonari.KNNGraph.add, tonari.KNNGraph.remove, tonari.KNNGraph.replace]
PUBLIC: list[Any] = [getattr(tonari, name) for name in tonari.__all__] + METHODS
VERBS: list[Callable[..., Any]] = [each for each in PUBLIC if "__signature__" in vars(each)]


def described_by(doc: str) -> set[str]:
    """Return the parameters of a docstring."""
    section = re.search(r"\nParameters\n-+\n(.*?)(?=\n\w[^\n]*\n---|$)", doc, flags=re.DOTALL)
    assert section is not None
    entries = [line.partition(" : ")[0] for line in section[1].split("\n") if re.match(r"\w", line)]
    return {name for entry in entries for name in entry.split(", ")}


def test_all_functions_that_search_share_their_options() -> None:
    apart = {"explain", "merge_neighbors", "open_neighbors", "plan", "recording", "select_k", "warm"}
    functions = {name for name in tonari.__all__ if inspect.isfunction(getattr(tonari, name))}
    assert {verb.__name__ for verb in VERBS if verb not in METHODS} == functions - apart


def test_the_types_and_the_record_have_the_same_options() -> None:
    assert {"metric", *SearchOptions.__annotations__} == {*COLUMNS, *Options._fields}


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.__qualname__)
def test_signatures_and_docstrings_have_every_option(verb: Callable[..., Any]) -> None:
    parameters = inspect.signature(verb).parameters
    assert parameters["progress"].default is None
    assert parameters["progress"].kind is inspect.Parameter.KEYWORD_ONLY
    assert not any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values())
    assert typing.get_type_hints(verb).keys() - {"self"} == {*parameters, "return"} - {"self"}
    doc = verb.__doc__ or ""
    if "\nParameters\n" in doc:
        assert described_by(inspect.cleandoc(doc)) == parameters.keys() - {"self"}


@shares(PlaceOptions)
def verb(points: Any, *, metric: str = "l1", seed: int = 0, plan: Any = None, **shared: Unpack[PlaceOptions]) -> Any:
    """Return the options.

    Parameters
    ----------
    points : array
    threads : int, optional
        Of a verb.

    Returns
    -------
    Options
    """
    return Options.of(metric, shared)


def test_options_are_before_the_plan_and_described_after_all_other_parameters() -> None:
    listed = inspect.signature(verb).parameters
    names = list(listed)
    assert names[:4] == ["points", "metric", "seed", "device"]
    assert names[-1] == "plan"
    assert str(listed["memory"]) == "memory: 'int | str | None' = None"
    assert listed["device"].default == "auto"
    doc = verb.__doc__ or ""
    assert re.search(
        r"    Of a verb\.\nmetric, device, memory, progress.*\n    As for :func:`search`\.\n\nReturns", doc
    )
    names = list(inspect.signature(tonari.search).parameters)
    assert names[3:10] == ["metric", *COLUMNS, "method"]
    assert names[-1] == "plan"


def test_options_are_passed_on_and_others_refused() -> None:
    assert verb(1, device="cpu", threads=3) == Options("l1", device="cpu", threads=3)
    with pytest.raises(TypeError, match=r"^verb\(\) got an unexpected keyword argument 'method'$"):
        verb(1, threads=3, method="exact")


def test_weights_are_no_part_of_the_record() -> None:
    shared = {"V": 1, "threads": 2}
    assert columns_of(shared) == {"V": 1}
    assert Options.of("seuclidean", shared) == Options("seuclidean", threads=2)
