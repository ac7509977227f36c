"""All runs of a bandit at once on a CUDA device, for bandits whose lists the kernel can make; imported when a simulation goes there."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray

from rankpolicy.bandits.base import Bandit
from rankpolicy.bandits.bubble_rank import BubbleRank
from rankpolicy.bandits.ccm_ts import CcmTS
from rankpolicy.bandits.ccm_ucb import CcmUCB
from rankpolicy.bandits.dbn_ts import DbnTS
from rankpolicy.bandits.dbn_ucb import DbnUCB
from rankpolicy.bandits.epsilon_greedy import EpsilonGreedy
from rankpolicy.bandits.index_bandit import AnyIndexBandit
from rankpolicy.bandits.indices import KLUCB, UCB1, CountIndex, ThompsonSampling
from rankpolicy.bandits.linear import LinTS, LinUCB
from rankpolicy.bandits.pbm_pie import PbmPIE
from rankpolicy.bandits.pbm_ts import PbmTS
from rankpolicy.bandits.pbm_ucb import PbmUCB
from rankpolicy.bandits.random_lists import RandomLists
from rankpolicy.bandits.ranked_exp3 import RankedExp3
from rankpolicy.bandits.ranked_kl_ucb import RankedKLUCB
from rankpolicy.bandits.top_rank import TopRank
from rankpolicy.bandits.ubm_ts import UbmTS
from rankpolicy.bandits.ubm_ucb import UbmUCB
from rankpolicy.kernels.bandits.memory import WHOLE_LIST
from rankpolicy.kernels.triton import bandit_codes as codes
from rankpolicy.kernels.triton import bandits as kernels
from rankpolicy.simulation.problems import Problem
from rankpolicy.simulation.walks import simulated_users

CUDA = torch.device("cuda")
STEPS_OF_A_LAUNCH = 20_000  # so that an interrupt does not wait for the whole simulation
FEWEST_RUNS_AT_ONCE, MOST_RUNS_AT_ONCE = 64, 1 << 15
MOST_BYTES = 4 << 30  # of what runs remember
_INDICES: dict[type[CountIndex], int] = {KLUCB: codes.KL_UCB, UCB1: codes.UCB1, ThompsonSampling: codes.TS}
_OTHERS: dict[type[Bandit], int] = {
    EpsilonGreedy: codes.EPSILON_GREEDY,
    RandomLists: codes.RANDOM,
    RankedKLUCB: codes.RANKED_KL_UCB,
    RankedExp3: codes.RANKED_EXP3,
    PbmUCB: codes.PBM_UCB,
    PbmTS: codes.PBM_TS,
    PbmPIE: codes.PBM_PIE,
    UbmUCB: codes.UBM_UCB,
    UbmTS: codes.UBM_TS,
    CcmTS: codes.CCM_TS,
    CcmUCB: codes.CCM_UCB,
    DbnTS: codes.DBN_TS,
    DbnUCB: codes.DBN_UCB,
    TopRank: codes.TOP_RANK,
    BubbleRank: codes.BUBBLE_RANK,
}


def rule_of(make: Callable[..., Bandit], problem: Problem) -> kernels.Rule | str:
    """The bandit as the kernel reads it, or why the kernel cannot run it."""
    maker = make.func if isinstance(make, partial) else make
    if not isinstance(maker, type):
        return "a function makes it, which may give every run another bandit"
    bandit = make(num_items=problem.num_items, cutoff=problem.cutoff, random_state=0)
    kind = _kind_of(bandit)
    if kind is None:
        return f"on a GPU there are only {', '.join(codes.KINDS)}"
    if kind >= codes.RANKED_KL_UCB and (bandit.window is not None or bandit.discount < 1):
        return "it forgets counts of every position"
    if problem.num_items > kernels.MOST_ITEMS or problem.cutoff > kernels.MOST_POSITIONS:
        return f"a GPU takes at most {kernels.MOST_ITEMS} items and lists of {kernels.MOST_POSITIONS}"
    settings, num_tables = tuple(bandit.memory.settings.tolist()), len(bandit.memory.statistics)
    if codes.TOP_RANK <= kind < codes.LIN_UCB:
        settings, num_tables = (*settings, *bandit.memory.statistics[0].diagonal().tolist()), 2 * problem.num_items
    num_features = 0
    if kind >= codes.LIN_UCB:
        features = bandit.memory.features
        num_features = features.shape[1]
        if num_features > kernels.MOST_FEATURES or features.size > kernels.MOST_CELLS:
            return f"a GPU takes at most {kernels.MOST_FEATURES} features, {kernels.MOST_CELLS} of all items"
        settings = (*settings, float(bandit.memory.statistics[0, 0, 1]), *features.ravel().tolist())
        num_tables = -(-num_features * (num_features + 1) // problem.num_items)
    rule = kernels.Rule(
        kind=kind,
        # Bandits that know which positions users examine count the whole list.
        feedback=WHOLE_LIST if codes.PBM_UCB <= kind < codes.LIN_UCB else bandit.memory.feedback,
        settings=settings,
        best_last=bandit.memory.best_last,
        discount=bandit.memory.discount,
        window=bandit.window or 0,
        num_tables=num_tables,
        num_features=num_features,
    )
    if _runs_at_once(rule, problem) < FEWEST_RUNS_AT_ONCE:
        return "what it remembers takes too much memory"
    return rule


def _runs_at_once(rule: kernels.Rule, problem: Problem) -> int:
    bytes_of_run = problem.num_items * (2 * 8 * rule.num_tables + rule.window)
    return min(MOST_RUNS_AT_ONCE, MOST_BYTES // bytes_of_run)


def _kind_of(bandit: Bandit) -> int | None:
    if isinstance(bandit, AnyIndexBandit):
        used = type(bandit._used_index())
        for kind, code in _INDICES.items():
            # An index of one's own may inherit from one of these and have other formulas.
            if issubclass(used, kind) and used.value is kind.value and used.threshold is kind.threshold:
                return code
        for linear, code in ((LinUCB, codes.LIN_UCB), (LinTS, codes.LIN_TS)):
            if issubclass(used, linear) and used.steps is linear.steps:
                return code
        return None
    for other, code in _OTHERS.items():
        if isinstance(bandit, other) and type(bandit).program is other.program:
            return code
    return None


def regrets_on_device(
    rule: kernels.Rule,
    problem: Problem,
    *,
    steps: NDArray[np.int64],
    num_runs: int,
    random_state: int,
    free_observations: bool,
    first_run: int = 0,
    first_step: int = 1,
    start: kernels.RunState | None = None,
    trace: kernels.Trace | None = None,
) -> NDArray[np.float64]:
    """Regret (run, step) after the given steps; ``start`` is what was counted before ``first_step``, and becomes what is counted."""
    users, device = simulated_users(problem), CUDA

    def copied(array: NDArray[np.float64]) -> torch.Tensor:
        return torch.tensor(np.ascontiguousarray(array), device=device)

    phases = []
    for place, (phase, best) in enumerate(zip(problem.phases, problem.best_rewards(), strict=True)):
        available = torch.zeros(problem.num_items, dtype=torch.bool)
        available[torch.from_numpy(np.asarray(phase.available))] = True
        phases.append(
            kernels.PhaseArrays(
                attraction=copied(users.attraction[place]),
                after_click=copied(users.after_click[place]),
                rewards=copied(users.rewards[place]),
                available=available.to(device),
                best=torch.tensor([best], dtype=torch.float64, device=device),
                length=min(problem.cutoff, len(phase.available)),
            )
        )
    examination, wanted = copied(users.examination), torch.tensor(steps, device=device)
    seed = int(np.random.SeedSequence(random_state).generate_state(1, np.uint64)[0] >> np.uint64(1))
    end = int(steps[-1]) + 1
    starts = [phase.start for phase in problem.phases if phase.start < end]
    cuts = sorted({*(max(own, first_step) for own in starts), *range(first_step, end, STEPS_OF_A_LAUNCH), end})
    found = []
    runs_at_once = _runs_at_once(rule, problem)
    for first in range(first_run, first_run + num_runs, runs_at_once):
        count = min(runs_at_once, first_run + num_runs - first)
        state = start or kernels.new_state(rule, count, problem.num_items, device)
        regrets = torch.empty(count, len(steps), dtype=torch.float64, device=device)
        for launch, stop in pairwise(cuts):
            kernels.run_steps(
                rule,
                phases[int(np.searchsorted(starts, launch, side="right")) - 1],
                state,
                examination=examination,
                after_skip=float(users.after_skip),
                seed=seed,
                first_run=first,
                first_step=launch,
                end_step=stop,
                wanted=wanted,
                regrets=regrets,
                first_wanted=int(np.searchsorted(steps, launch)),
                is_first_launch=launch == 1 and free_observations,
                trace=trace,
            )
            if device.type == "cuda":
                torch.cuda.synchronize()
        found.append(regrets.cpu().numpy())
    return np.concatenate(found)
