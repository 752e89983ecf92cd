"""KNeighborsTransformer, and a grid search of KNeighborsClassifier, compared with scikit-learn's.

Our matrix is verified on a sample of rows against tonari.metrics.reference; scikit-learn must find the same neighbours,
except where rounding changes their order. Our classes are verified by the votes of the reference's neighbours, and
scikit-learn's grid search must give the same scores and classes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...harness.case import Case
from ...harness.device import Timing, take_turns
from ...harness.peers import cpu, estimators
from ...harness.peers.estimators import OURS, SKLEARN, Estimators, Searched
from ...harness.proof import WrongAnswer, neighbors, without_self
from ...harness.run import Run, seconds_of
from .data import CLASSES, labels_of, points_of

CANDIDATES, FOLDS = (3, 5, 10), 3
PROVED_ROWS = 64
FAITHFUL = 0.999  # minimum share of our neighbours that scikit-learn, which computes in float32, finds too
LOOP_SECONDS = 0.25  # minimum seconds of successive grid searches that are timed together
LONG_ROUNDS = 3  # maximum number of timed rounds if a call takes seconds


@contextlib.contextmanager
def contestants(run: Run, case: Case, points: Any, **more: Any) -> Iterator[dict[str, Estimators]]:
    """Start a process for each contestant, tonari first; yield them by name."""
    threads = run.threads or 1
    with contextlib.ExitStack() as stack:
        found = {OURS: stack.enter_context(Estimators(OURS, points, threads, None, **more))}
        if SKLEARN in case.peers and run.wants(SKLEARN):
            core = cpu.fastest_blas_core(SKLEARN, threads)
            found[SKLEARN] = stack.enter_context(Estimators(SKLEARN, points, threads, core, **more))
        yield found


def refused(run: Run, case: Case) -> bool:
    """Return whether the case cannot be measured; in that case, write a row with the reason."""
    why_not = estimators.missing()
    if why_not:
        run.write(case, [{"who": OURS, "note": why_not}])
    return why_not is not None


def write(run: Run, case: Case, timings: dict[str, Timing], columns: dict[str, dict[str, Any]]) -> None:
    """Write a row for each contestant; tonari's row has the verdicts."""
    ratios = {who: timing.median / timings[OURS].median for who, timing in timings.items() if who != OURS}
    for who, timing in timings.items():
        base = {"who": who} | columns.get(who, {}) | seconds_of(timing)
        verdicts = run.verdicts(case.bars, ratios) if who == OURS else [{"ratio": ratios[who]}]
        run.write(case, [base | verdict for verdict in verdicts])


# --- the graph ----------------------------------------------------------------------------------------------------


def transform(run: Run, case: Case) -> None:
    """Verify and time KNeighborsTransformer in both libraries; write a row for each library."""
    if refused(run, case):
        return
    points = points_of(run, case)
    with contestants(run, case, points) as found:
        for one in found.values():
            one.transform(case.k)
        rows = np.sort(np.random.default_rng(0).choice(case.n, min(PROVED_ROWS, case.n), replace=False))
        lists = found[OURS].lists(rows)
        columns: dict[str, dict[str, Any]] = {OURS: prove_lists(lists, rows, points, case.k)}
        if SKLEARN in found:
            columns[SKLEARN] = {"recall": agreeing(lists[1], found[SKLEARN].lists(rows)[1], rows)}
        calls: dict[str, Callable[[], object]] = {
            who: lambda one=one: one.transform(case.k)  # type: ignore[misc]
            for who, one in found.items()
        }
        rounds = min(LONG_ROUNDS, run.repeats)
        timings = take_turns(run.device, calls, seconds=0.0, least=rounds, most=rounds, settle=True)
    write(run, case, timings, columns)


def prove_lists(lists: tuple[Any, Any], rows: Any, points: Any, k: int) -> dict[str, Any]:
    """Verify the rows `rows` of our sparse matrix; return columns of results about the verification.

    Raises WrongAnswer unless each row has the point itself at distance 0, then the reference's neighbours.
    """
    from tonari.metrics.reference import brute

    distances, indices = lists
    if (indices[:, 0] != rows).any() or distances[:, 0].any():
        raise WrongAnswer("a row of the matrix does not begin with itself at distance 0")
    neighbors.same((distances[:, 1:], indices[:, 1:]), brute(points[rows], points, k, self_ids=rows), OURS)
    return {"proof": neighbors.PROOF, "proved": len(rows), "recall": 1.0}


def agreeing(ours: Any, theirs: Any, rows: Any) -> float:
    """Return the share of our neighbours that a peer found too; raise WrongAnswer if it is less than FAITHFUL."""
    others = without_self(theirs.astype(np.int64), rows)
    share = float(np.mean([np.isin(mine, other).mean() for mine, other in zip(ours[:, 1:], others, strict=True)]))
    if share < FAITHFUL:
        raise WrongAnswer(f"{SKLEARN} has {share:.4f} of our neighbours")
    return share


# --- the grid search ----------------------------------------------------------------------------------------------


def grid(run: Run, case: Case) -> None:
    """Verify and time a grid search of KNeighborsClassifier in both libraries; write a row for each library."""
    if refused(run, case):
        return
    rows = points_of(run, case)
    points, queries = rows[: case.n], rows[case.n :]
    labels = labels_of(points)
    with contestants(run, case, points, queries=queries, labels=labels) as found:
        for one in found.values():
            one.search(CANDIDATES, FOLDS, 1)
        ours = found[OURS].searched()
        proved = prove_classes(ours, queries, points, labels)
        if SKLEARN in found:
            same_search(ours, found[SKLEARN].searched())
        seconds = run.time_once(lambda: found[OURS].search(CANDIDATES, FOLDS, 1))
        loops = max(1, round(LOOP_SECONDS / max(1e-3, seconds)))
        calls: dict[str, Callable[[], object]] = {
            who: lambda one=one: one.search(CANDIDATES, FOLDS, loops)  # type: ignore[misc]
            for who, one in found.items()
        }
        timings = take_turns(run.device, calls, seconds=0.0, least=run.repeats, most=run.repeats, settle=True)
    extras = {"loops": loops, "best": ours.best, "score": float(ours.scores.max())}
    facts = {"proof": neighbors.PROOF, "proved": proved, "extras": extras}
    write(run, case, {who: timing.times(1 / loops) for who, timing in timings.items()}, {OURS: facts})


def prove_classes(found: Searched, queries: Any, points: Any, labels: Any) -> int:
    """Compare predicted classes with the votes of the reference's neighbours; return the number of queries."""
    from tonari.metrics.reference import brute

    nearest = labels[brute(queries, points, found.best).indices]
    votes = (nearest[:, :, None] == np.arange(CLASSES)).sum(axis=1)
    wrong = votes.argmax(axis=1) != found.classes
    if wrong.any():
        raise WrongAnswer(f"query {int(wrong.argmax())} has another class than its reference neighbours")
    return len(queries)


def same_search(ours: Searched, theirs: Searched) -> None:
    """Raise WrongAnswer unless scikit-learn found the same scores and classes."""
    if ours.best != theirs.best or not np.array_equal(ours.scores, theirs.scores):
        raise WrongAnswer(f"scores {ours.scores} differ from those of {SKLEARN}, {theirs.scores}")
    if not np.array_equal(ours.classes, theirs.classes):
        raise WrongAnswer(f"{SKLEARN} predicts other classes")


# --- calls for comparisons of two versions ------------------------------------------------------------------------


def transform_call(run: Run, case: Case) -> Callable[[], Any]:
    """Return a call that builds the graph of a case in this process."""
    from tonari.estimators import KNeighborsTransformer

    points = points_of(run, case)
    return lambda: KNeighborsTransformer(n_neighbors=case.k, n_jobs=run.threads).fit_transform(points)


def grid_call(run: Run, case: Case) -> Callable[[], Any]:
    """Return a call that runs the grid search of a case in this process."""
    from sklearn.model_selection import GridSearchCV

    from tonari.estimators import KNeighborsClassifier

    points = points_of(run, case)[: case.n]
    labels, candidates = labels_of(points), {"n_neighbors": list(CANDIDATES)}
    return lambda: GridSearchCV(KNeighborsClassifier(n_jobs=run.threads), candidates, cv=FOLDS).fit(points, labels)
