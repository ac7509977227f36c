"""Bandits against simulated users: regret, and theoretical bounds on it.

User ─stationary, abrupt_drift, change_items, ...─> Problem ─simulate with bandits─> Simulation: regret by bandit, run and step
"""

from typing import TYPE_CHECKING

from rankpolicy.optional import lazy_imports

if TYPE_CHECKING:
    from rankpolicy.clicks.models.definition import User as User
    from rankpolicy.simulation.problems import (
        Phase as Phase,
        Problem as Problem,
        abrupt_drift as abrupt_drift,
        best_list as best_list,
        cascade_lower_bound_problem as cascade_lower_bound_problem,
        change_items as change_items,
        dcm_lower_bound_problem as dcm_lower_bound_problem,
        gradual_drift as gradual_drift,
        linear_dcm_problem as linear_dcm_problem,
        stationary as stationary,
    )
    from rankpolicy.simulation.robustness import (
        RobustnessMatrix as RobustnessMatrix,
        robustness_matrix as robustness_matrix,
    )
    from rankpolicy.simulation.runs import (
        Simulation as Simulation,
        log_spaced_steps as log_spaced_steps,
        mean_over_problems as mean_over_problems,
        simulate as simulate,
    )
    from rankpolicy.simulation.theory import (
        cascade_bound as cascade_bound,
        lower_bound as lower_bound,
        upper_bound as upper_bound,
    )
    from rankpolicy.simulation.users import (
        cascade_user as cascade_user,
        ccm_user as ccm_user,
        dbn_user as dbn_user,
        dcm_user as dcm_user,
        draw_clicks as draw_clicks,
        expected_reward as expected_reward,
        pbm_user as pbm_user,
        random_user as random_user,
        sdbn_user as sdbn_user,
        ubm_user as ubm_user,
    )

__getattr__, __dir__, __all__ = lazy_imports(__name__, __file__)
