"""torch.compile leaves calls of tonari in compiled models alone, and gradients flow through them."""

from __future__ import annotations

import inspect
import shutil
import warnings
from typing import Any

import numpy as np
import pytest

import tonari
from tests.helpers import checks
from tests.helpers.devices import HAS_TORCH, needs_torch

# Importing Dynamo makes torch 2.11 warn about its own calls.
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated:DeprecationWarning")

LOOKALIKES = ("faiss", "pyg", "pytorch3d", "scipy", "sentence_transformers")


def functions_of(owner: Any, names: Any) -> dict[str, Any]:
    """Return the functions of these names, and the methods that their classes define themselves."""
    found: dict[str, Any] = {}
    for name in names:
        value = getattr(owner, name)
        if inspect.isclass(value):
            members = inspect.getmembers(value, inspect.isroutine)
            public = [each for each, _ in members if not each.startswith("_")]
            found |= {f"{name}.{each}": getattr(value, each) for each in public}
            if value.__init__ is not object.__init__ and "__dataclass_fields__" not in value.__dict__:
                found[f"{name}.__init__"] = value.__init__
        elif inspect.isroutine(value):
            found[name] = value
    return {name: value for name, value in found.items() if getattr(value, "__module__", "").startswith("tonari")}


@pytest.mark.parametrize("module", ["", *LOOKALIKES])
def test_every_public_function_is_left_alone(module: str) -> None:
    if module in ("pyg", "pytorch3d", "sentence_transformers") and not HAS_TORCH:
        pytest.skip("the lookalike needs torch")
    owner: Any = tonari
    names = ["Index", *(name for name in tonari.__all__ if name[0].islower())]
    if module:
        owner = __import__(f"tonari.compat.{module}", fromlist=["__all__"])
        names = owner.__all__
    open_ = [name for name, value in functions_of(owner, names).items() if not hasattr(value, "_torchdynamo_disable")]
    assert not open_


def by_verbs(rows: Any) -> Any:
    graph = tonari.knn_graph(rows, 4, differentiable=True)
    found = tonari.search(rows * 2, rows, 3, differentiable=True)
    return graph.distances.sum() + (found.distances**2).sum() + rows[graph.indices.long()].sin().sum()


def by_an_index(rows: Any) -> Any:
    found = tonari.Index(rows.detach()).search(rows.detach(), 3)
    return (rows[found.indices.long()] - rows[:, None]).norm(dim=-1).sum()


def by_lookalikes(rows: Any) -> Any:
    from tonari.compat import pyg, pytorch3d

    edges = pyg.knn_graph(rows.detach(), 3)
    near = pytorch3d.knn_points(rows[None], rows[None], K=2)
    return (rows[edges[0]] - rows[edges[1]]).norm(dim=-1).sum() + near.dists.sum()


@needs_torch
@pytest.mark.parametrize(
    ("use", "backend"),
    [(by_verbs, "eager"), (by_an_index, "eager"), (by_lookalikes, "eager"), (by_verbs, "inductor")],
)
def test_a_compiled_model_has_the_same_values_and_gradients(backend: str, use: Any) -> None:
    if backend == "inductor" and shutil.which("g++") is None:
        pytest.skip("inductor needs a C++ compiler")
    import torch

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(3, 3)

        def forward(self, rows: Any) -> Any:
            return use(self.layer(rows).tanh()) + rows.sum()

    rows, model = torch.from_numpy(checks.gaussian(40, 3)), Model()
    torch.compiler.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Dynamo reads attributes that warn, and fails if warnings are errors
        compiled = torch.compile(model, backend=backend)
        results = []
        for run in (model, compiled, compiled):
            model.zero_grad()
            value = run(rows)
            value.backward()
            results.append((value.detach().numpy(), model.layer.weight.grad.numpy().copy()))
    for value, gradient in results[1:]:
        np.testing.assert_allclose(value, results[0][0], rtol=1e-5)  # compiled code adds in another order
        np.testing.assert_allclose(gradient, results[0][1], rtol=1e-4, atol=1e-6)


@needs_torch
def test_no_graph_has_code_of_tonari() -> None:
    """Graphs end before a call and continue after it; no graph contains code of tonari."""
    import torch

    graphs: list[Any] = []

    def kept(graph: Any, _: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    torch.compiler.reset()
    compiled = torch.compile(lambda rows: tonari.search(rows.sin(), rows, 3).distances.cos(), backend=kept)
    rows = torch.from_numpy(checks.gaussian(40, 3))
    for _ in range(2):
        assert torch.equal(compiled(rows), tonari.search(rows.sin(), rows, 3).distances.cos())
    names = [str(node.target) for graph in graphs for node in graph.graph.nodes if node.op.startswith("call")]
    assert sorted(names) == ["cos", "sin"]
