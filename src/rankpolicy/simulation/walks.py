"""The users of a problem as kernels read them."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankpolicy.simulation.problems import Problem


def simulated_users(problem: Problem) -> Any:
    """The users of all phases as the compiled loop reads them: every item at every position."""
    from rankpolicy.kernels.clicks.walk import SimulatedUsers

    length = min(problem.cutoff, max(len(phase.available) for phase in problem.phases))
    table = np.broadcast_to(np.arange(problem.num_items)[:, None], (problem.num_items, length))
    users = [phase.user for phase in problem.phases]
    walks = [user.walk(table) for user in users]
    return SimulatedUsers(
        np.stack([user.attraction for user in users]),
        walks[0].examination,
        np.stack([walk.after_click for walk in walks]),
        walks[0].after_skip,
        np.stack([user.click_rewards(table) for user in users]),
    )
