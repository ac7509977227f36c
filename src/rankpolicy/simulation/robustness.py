"""Every bandit against every kind of user: how much regret it has with users it was not made for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankpolicy.bandits import BANDITS
from rankpolicy.clicks.models.definition import User
from rankpolicy.declarations.arguments import checked_kinds
from rankpolicy.display import frozen_value
from rankpolicy.executors import Executor
from rankpolicy.simulation.problems import stationary
from rankpolicy.simulation.runs import MakeBandit, ReportRun, mean_over_problems, simulate
from rankpolicy.simulation.users import dcm_user, random_user
from rankpolicy.types import RankPolicyError, unknown_name

OUT_OF_ORDER = "dcm, v out of order"
USERS = ("cascade", "dcm", OUT_OF_ORDER, "pbm", "ubm", "ccm", "dbn", "sdbn")


@frozen_value(kw_only=True)
class RobustnessMatrix:
    """Regret of every bandit with every kind of user.

    Parameters
    ----------
    bandits
        Names of the bandits.
    users
        Kinds of users.
    regrets
        Regret (bandit, user, run), the mean over users drawn at random.
    random_regrets
        Regret of random lists (user, run).
    num_steps
        Number of steps.
    """

    bandits: tuple[str, ...]
    users: tuple[str, ...]
    regrets: NDArray[np.float64]
    random_regrets: NDArray[np.float64]
    num_steps: int

    def shares(self) -> NDArray[np.float64]:
        """Regret as a share of that of random lists (bandit, user): 0 shows the best list from the start, 1 has learned nothing."""
        shares: NDArray[np.float64] = self.regrets.mean(2) / self.random_regrets.mean(1)
        return shares

    def standard_errors(self) -> NDArray[np.float64]:
        """Standard error of the shares (bandit, user) over runs; the regret of random lists varies little and is taken as known."""
        num_runs = self.regrets.shape[2]
        if num_runs == 1:
            return np.zeros(self.regrets.shape[:2])
        errors: NDArray[np.float64] = self.regrets.std(2, ddof=1) / np.sqrt(num_runs) / self.random_regrets.mean(1)
        return errors

    def is_made_for(self) -> NDArray[np.bool_]:
        """Whether each bandit is made for each kind of user (bandit, user); False for bandits under names of your own."""
        kinds = [BANDITS[name].made_for if name in BANDITS else "" for name in self.bandits]
        return np.array([[("dbn" if user == "sdbn" else user) == kind for user in self.users] for kind in kinds])

    def to_dict(self) -> dict[str, Any]:
        """The matrix as plain numbers and texts."""
        return {
            "steps": self.num_steps,
            "runs": self.regrets.shape[2],
            "bandits": list(self.bandits),
            "users": list(self.users),
            "share_of_random_regret": self.shares().tolist(),
            "standard_error": self.standard_errors().tolist(),
        }


@checked_kinds
def robustness_matrix(
    bandits: Iterable[str] | Mapping[str, MakeBandit] | None = None,
    *,
    users: Iterable[str] = USERS,
    num_items: int = 12,
    cutoff: int = 4,
    num_steps: int = 5000,
    num_runs: int = 5,
    num_draws: int = 4,
    random_state: int = 0,
    executor: Executor | str | None = None,
    report_run: ReportRun | None = None,
) -> RobustnessMatrix:
    """Simulate bandits with users of every kind.

    Items are in random order, so a bandit that starts from a base ranking starts from a random one. Bandits have their default settings
    and know nothing about the user, except that ccm-ts and dbn-ts assume the continuation that random ccm and dbn users have.

    Parameters
    ----------
    bandits
        Names of bandits, or functions that make them by name, as for ``simulate``; by default all.
    users
        Kinds of users.
    num_items
        Number of items.
    cutoff
        Number of items that a list shows.
    num_steps
        Number of lists shown in a run.
    num_runs
        Number of runs with each user.
    num_draws
        Number of random users of each kind.
    random_state
        Seed; the same seed gives the same numbers.
    executor
        Where the runs take place, as for ``simulate``.
    report_run
        Called after every run with the bandit, the runs done and their mean regret.
    """
    chosen = [name for name in BANDITS if name != "random"] if bandits is None else bandits
    makers = dict(chosen) if isinstance(chosen, Mapping) else {name: BANDITS.named(name) for name in chosen}
    kinds = tuple(users)
    columns = []
    for kind in kinds:
        simulations = []
        for draw in range(num_draws):
            user = _drawn_user(kind, num_items, cutoff, random_state + draw)
            simulations.append(
                simulate(
                    makers | {"random lists": BANDITS["random"]},
                    stationary(user, cutoff, name=kind),
                    num_steps=num_steps,
                    num_runs=num_runs,
                    random_state=random_state + draw,
                    steps=[num_steps],
                    executor=executor,
                    report_run=report_run,
                )
            )
        columns.append(mean_over_problems(simulations).regrets)
    return RobustnessMatrix(
        bandits=tuple(makers),
        users=kinds,
        regrets=np.array([[column[name][:, -1] for column in columns] for name in makers]),
        random_regrets=np.array([column["random lists"][:, -1] for column in columns]),
        num_steps=num_steps,
    )


def _drawn_user(kind: str, num_items: int, cutoff: int, seed: int) -> User:
    if kind not in USERS:
        raise RankPolicyError(unknown_name("kind of user", kind, USERS))
    if kind == OUT_OF_ORDER:
        # Most easily satisfied at the bottom: the worst order for bandits that put the best item first.
        user = random_user("dcm", num_items, cutoff, random_state=seed)
        return dcm_user(user.attraction, user.parameters["stop"][::-1])
    return random_user(kind, num_items, cutoff, random_state=seed)
