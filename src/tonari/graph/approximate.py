"""What `knn_graph` does where a graph may miss neighbours: arguments, the choice of a method, the run."""

from __future__ import annotations

import reprlib
from typing import TYPE_CHECKING, Any

import numpy as np

from tonari import inputs
from tonari.core.neighbors import Neighbors
from tonari.core.progress import ProgressLike
from tonari.graph.knn_graph import KNNGraph
from tonari.methods.auto import Decision, choose_graph
from tonari.methods.plan import check_exact
from tonari.nn_descent.driver import build
from tonari.nn_descent.plan import DescentPlan, check_recall, check_seed
from tonari.nn_descent.report import DescentReport

if TYPE_CHECKING:
    from tonari.methods.engines import Engine
    from tonari.nn_descent.backend import Steps


def may_miss(method: str, recall: Any, seed: Any, start: Any, plan: Any) -> bool:
    """Whether a graph need not have all neighbours; what is asked of it is refused where it does not apply."""
    if plan is not None:
        for name, value in (("recall", recall), ("seed", seed)):
            if value is not None:
                raise ValueError(f"a plan has its own {name}: give it to tonari.plan, not beside plan=")
        method = plan.method
    approximate = method == "nn-descent" or (method == "auto" and recall is not None)
    if not approximate:
        check_exact(method, recall=recall, seed=seed, start=start)
    if recall is not None:
        check_recall(recall)
    if seed is not None:
        check_seed(seed)
    kind = kind_of_start(start)
    if plan is not None and approximate and kind != plan.start and (start is not None or plan.start == "graph"):
        raise ValueError(f"the plan has start={plan.start!r}, this call start={kind!r}: they must agree")
    return approximate


def kind_of_start(start: Any) -> str:
    """What a plan calls it."""
    if isinstance(start, KNNGraph):
        return "graph"
    if start is None:
        return "clusters"
    if not isinstance(start, str) or start not in ("clusters", "random"):
        raise ValueError(f'start={reprlib.repr(start)}: expected "clusters", "random" or a KNNGraph of the same points')
    return start


def choose_or_plan(
    engine: Engine, rows: Any, k: int, metric: str, method: str, asked: dict[str, Any], **given: Any
) -> Decision:
    """NN-Descent, or for "auto" what is sooner."""
    if method == "auto":
        return choose_graph(engine, rows, k, metric, **asked, **given)
    asked |= {"threads": given["threads"], "memory": given["memory"]}
    return Decision(engine.plan_descent(rows, k, metric, **asked))


def descended(
    engine: Engine, rows: Any, plan: DescentPlan, start: Any, progress: ProgressLike, patience: float | None
) -> tuple[Neighbors, DescentReport]:
    """A graph by NN-Descent, beside the rows; patience as for :func:`tonari.nn_descent.driver.build`."""
    if isinstance(start, KNNGraph) and start.n != len(rows):
        raise ValueError(f"start is a graph of {start.n} points, but there are {len(rows)}: they must be the same")
    steps = engine.steps(rows, plan)
    found, report = build(steps, plan, progress, _begun(engine, steps, start), patience=patience)
    return beside_rows(found, rows), report


def _begun(engine: Engine, steps: Steps, start: Any) -> Any:
    """The entries of a graph to start with, if there is one."""
    if not isinstance(start, KNNGraph):
        return None
    entries = steps.entries_of(engine.beside_steps(start.indices[:, int(start.include_self) :]), new=True)
    return steps.beside(entries, entries[:, :0])


def beside_rows(found: Neighbors, rows: Any) -> Neighbors:
    """An answer in host memory where the rows are there."""
    if not isinstance(rows, np.ndarray):
        return found
    return Neighbors(*(inputs.hand_back(part, inputs.Side("numpy", None)) for part in found))
