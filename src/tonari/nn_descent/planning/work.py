"""The work of a run, from its plan: the number of other points and of centres with which each point is compared.

It depends only on the plan, not on the machine or the run. The search for the true neighbours of the measured rows,
which every run does once, is not included.
"""

from __future__ import annotations

from tonari.nn_descent.plan import DescentPlan
from tonari.nn_descent.updates import GNND

_GNND_ROUNDS = 8  # number of rounds of a typical run of "gnnd", such as the runs that measured its rates


def start_work(plan: DescentPlan) -> float:
    """Return the number of centres and members with which a point is compared before the first round."""
    if plan.start != "clusters":
        return 0.0
    return plan.n_clusters + plan.n_probe * plan.n / plan.n_clusters


def round_work(plan: DescentPlan) -> float:
    """Return the number of points with which a point is compared in a round: candidates and listed points."""
    if plan.update == GNND:
        # a point's NEW samples, up to 2 p, are compared with one another and with its OLD samples, up to 2 p
        return 6.0 * plan.samples**2
    met = plan.reverse + (plan.n_hubs + plan.reverse) * plan.neighbors_per_hub
    return float(plan.list_size + min(plan.width, met))


def expected_work(plan: DescentPlan) -> float:
    """Return the number of comparisons per point in a typical run; the seconds of a plan are estimated from it."""
    if plan.update == GNND:
        return start_work(plan) + _GNND_ROUNDS * round_work(plan)
    return start_work(plan) + plan.light_rounds * round_work(plan.light) + round_work(plan)
