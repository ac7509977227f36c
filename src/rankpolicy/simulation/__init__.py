"""Bandits against simulated users: regret, and theoretical bounds on it.

User ─stationary, abrupt_drift, change_items, ...─> Problem ─simulate with bandits─> Simulation: regret by bandit, run and step
"""

from typing import TYPE_CHECKING

from rankpolicy.optional import lazy_imports

if TYPE_CHECKING:
    from rankpolicy.clicks.models.definition import User
    from rankpolicy.simulation.problems import (
        Phase,
        Problem,
        abrupt_drift,
        best_list,
        cascade_lower_bound_problem,
        change_items,
        dcm_lower_bound_problem,
        gradual_drift,
        linear_dcm_problem,
        stationary,
    )
    from rankpolicy.simulation.robustness import RobustnessMatrix, robustness_matrix
    from rankpolicy.simulation.runs import Simulation, log_spaced_steps, mean_over_problems, simulate
    from rankpolicy.simulation.theory import cascade_bound, lower_bound, upper_bound
    from rankpolicy.simulation.users import (
        cascade_user,
        ccm_user,
        dbn_user,
        dcm_user,
        draw_clicks,
        expected_reward,
        pbm_user,
        random_user,
        sdbn_user,
        ubm_user,
    )

__getattr__, __dir__ = lazy_imports(__name__, __file__)

__all__ = [
    "Phase",
    "Problem",
    "RobustnessMatrix",
    "Simulation",
    "User",
    "abrupt_drift",
    "best_list",
    "cascade_bound",
    "cascade_lower_bound_problem",
    "cascade_user",
    "ccm_user",
    "change_items",
    "dbn_user",
    "dcm_lower_bound_problem",
    "dcm_user",
    "draw_clicks",
    "expected_reward",
    "gradual_drift",
    "linear_dcm_problem",
    "log_spaced_steps",
    "lower_bound",
    "mean_over_problems",
    "pbm_user",
    "random_user",
    "robustness_matrix",
    "sdbn_user",
    "simulate",
    "stationary",
    "ubm_user",
    "upper_bound",
]
