"""Simulated users and bandits on a GPU, one program per run; simulation/reference.py is the specification.

Counts of clicks and observations stay in registers, one lane per item; bandit_tables.py, bandit_chains.py,
bandit_pairs.py and bandit_linear.py hold the other kernels. A
launch runs some steps of all runs within one phase of the problem, and leaves what it has counted for the next launch.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from rankpolicy.kernels.bandits import memory
from rankpolicy.kernels.triton import bandit_codes as codes
from rankpolicy.kernels.triton.bandit_chains import chains_kernel
from rankpolicy.kernels.triton.bandit_indices import (
    EXPLORE,
    FREE,
    KEYS,
    TIES,
    beta_draws,
    click_rate,
    kl_ucb,
    kl_ucb_threshold,
    random_word,
    ucb1,
    uniform,
)
from rankpolicy.kernels.triton.bandit_linear import linear_kernel
from rankpolicy.kernels.triton.bandit_lists import is_clicked, largest, num_examined, place_largest, walk_list
from rankpolicy.kernels.triton.bandit_pairs import pairs_kernel
from rankpolicy.kernels.triton.bandit_tables import tables_kernel

MOST_ITEMS, MOST_POSITIONS = 4096, 63  # that a program holds in registers, and that fit into the bits of a number
MOST_FEATURES, MOST_CELLS = 32, 4096  # of linear bandits: a covariance, and features of items, in registers

_KL_UCB, _UCB1, _TS = (tl.constexpr(code) for code in (codes.KL_UCB, codes.UCB1, codes.TS))
_EPSILON_GREEDY, _RANDOM = tl.constexpr(codes.EPSILON_GREEDY), tl.constexpr(codes.RANDOM)
_LAST_CLICK = tl.constexpr(memory.LAST_CLICK)


class PhaseArrays(NamedTuple):
    """The users of one phase of a problem; float64 but for the items that are available."""

    attraction: Tensor  # (item,)
    after_click: Tensor  # (item, position)
    rewards: Tensor  # (item, position)
    available: Tensor  # (item,) bool
    best: Tensor  # (1,) expected reward of the best list
    length: int  # of lists


class Rule(NamedTuple):
    """A bandit as the kernels read it."""

    kind: int  # a place in bandit_codes.KINDS
    feedback: int  # as Memory.feedback
    settings: tuple[float, ...]
    best_last: bool
    discount: float
    window: int  # number of lists that count; 0: all
    num_tables: int
    num_features: int = 0


class RunState(NamedTuple):
    """What all runs have counted so far."""

    clicks: Tensor  # (run, table, item)
    observations: Tensor  # (run, table, item)
    regret: Tensor  # (run,)
    recent: Tensor  # (run, window, item) int8: 1 where a list of the window was examined, 2 where it was clicked


class Trace(NamedTuple):
    """The lists of all steps, for tests."""

    positions: Tensor  # (run, step, item) int32, -1 where an item was not shown
    clicks: Tensor  # (run, step) int64, one bit per position


def new_state(rule: Rule, num_runs: int, num_items: int, device: torch.device) -> RunState:
    """Nothing counted yet."""
    counts = torch.zeros(2, num_runs, rule.num_tables, num_items, dtype=torch.float64, device=device)
    return RunState(
        counts[0],
        counts[1],
        torch.zeros(num_runs, dtype=torch.float64, device=device),
        torch.zeros(num_runs, rule.window, num_items, dtype=torch.int8, device=device),
    )


def run_steps(
    rule: Rule,
    phase: PhaseArrays,
    state: RunState,
    *,
    examination: Tensor,
    after_skip: float,
    seed: int,
    first_run: int,
    first_step: int,
    end_step: int,
    wanted: Tensor,
    regrets: Tensor,
    first_wanted: int,
    is_first_launch: bool,
    trace: Trace | None = None,
) -> None:
    """Steps ``first_step`` to ``end_step`` - 1 of all runs, within one phase; fills regrets (run, wanted step) and changes the state.

    ``first_run`` is the number of the first of these runs, ``wanted`` are the steps after which regret is taken, from number
    ``first_wanted`` on. On the launch with ``is_first_launch`` every item is shown once, alone, before the first step.
    """
    num_runs, num_tables, num_items = state.clicks.shape
    numbers = torch.tensor(
        [after_skip, rule.discount, *rule.settings, *[0.0] * 6], dtype=torch.float64, device=state.clicks.device
    )
    seeds = torch.tensor([seed], dtype=torch.int64, device=state.clicks.device)
    block = max(2, triton.next_power_of_2(num_items))
    kernel = kernel_of(rule.kind)
    with torch.cuda.device_of(state.clicks):
        kernel[(num_runs,)](
            phase.attraction, examination, phase.after_click, phase.rewards, phase.available, phase.best,
            wanted, regrets, state.clicks, state.observations, state.regret, numbers, seeds, state.recent,
            state.regret if trace is None else trace.positions, state.regret if trace is None else trace.clicks,
            first_run, first_step, end_step, first_wanted, len(wanted), num_items, num_tables, phase.length,
            phase.after_click.shape[1], examination.shape[1], int(is_first_launch), len(rule.settings), rule.window,
            0 if trace is None else trace.clicks.shape[1],
            INDEX=rule.kind, FEEDBACK=rule.feedback, BEST_LAST=rule.best_last, FORGETS=rule.discount < 1,
            ITEMS=block, COLUMNS=triton.next_power_of_2(examination.shape[1]),
            TABLES=triton.next_power_of_2(rule.num_features or num_tables), TRACE=trace is not None,
            num_warps=min(8, max(1, block // 128, rule.num_features**2 // 256)),
        )  # fmt: skip


def kernel_of(kind: int) -> Any:
    """The kernel that simulates this kind of bandit."""
    if kind < codes.RANKED_KL_UCB:
        return counts_kernel
    if kind < codes.CCM_TS:
        return tables_kernel
    if kind < codes.TOP_RANK:
        return chains_kernel
    return pairs_kernel if kind < codes.LIN_UCB else linear_kernel


@triton.jit(do_not_specialize=codes.NUMBERS)
def counts_kernel(
    attraction, examination, after_click, rewards, available, best, wanted, regrets, clicks_of, observations_of, regret_of,
    numbers, seeds, recent, shown_positions, shown_clicks,
    first_run, first_step, end_step, first_wanted, num_wanted, num_items, num_tables, length, width, num_columns, is_first,
    num_settings, window, num_traced,
    INDEX: tl.constexpr, FEEDBACK: tl.constexpr, BEST_LAST: tl.constexpr, FORGETS: tl.constexpr,
    ITEMS: tl.constexpr, COLUMNS: tl.constexpr, TABLES: tl.constexpr, TRACE: tl.constexpr,
):  # fmt: skip
    """Some steps of one run of a bandit that counts clicks and observations of items."""
    place_of_run = tl.program_id(0).to(tl.int64)
    run = first_run + tl.program_id(0)
    items = tl.arange(0, ITEMS)
    is_item = items < num_items
    is_available = tl.load(available + items, mask=is_item, other=0) != 0
    after_skip = tl.load(numbers)
    discount = tl.load(numbers + 1)
    setting_0 = tl.load(numbers + 2)
    setting_1 = tl.load(numbers + 3)
    seed = tl.load(seeds)
    best_reward = tl.load(best)
    own = place_of_run * num_items
    clicks = tl.load(clicks_of + own + items, mask=is_item, other=0.0)
    observations = tl.load(observations_of + own + items, mask=is_item, other=0.0)
    total = tl.load(regret_of + place_of_run)
    wanted_now = first_wanted
    if is_first != 0:
        # Every item is shown once, alone.
        drawn = random_word(seed, run, tl.cast(0, tl.int64), FREE, items)
        chance = tl.load(examination) * tl.load(attraction + items, mask=is_item, other=0.0)
        clicks += tl.where(is_available & (uniform(drawn) < chance), 1.0, 0.0)
        observations += tl.where(is_available, 1.0, 0.0)
    for number in range(end_step - first_step):
        step = tl.cast(first_step, tl.int64) + number
        time = step.to(tl.float64)
        if window > 0:
            time = tl.minimum(time, tl.cast(window, tl.float64))
        if FORGETS:
            time = (1.0 - tl.exp(time * tl.log(discount))) / (1.0 - discount)
        value = tl.zeros((ITEMS,), tl.float64)
        if INDEX == _KL_UCB:
            value = kl_ucb(clicks, observations, kl_ucb_threshold(time, setting_0))
        elif INDEX == _UCB1:
            value = ucb1(clicks, observations, setting_0 * tl.log(tl.maximum(time, 1.0)))
        elif INDEX == _TS:
            successes = tl.where(is_available, setting_0 + tl.maximum(clicks, 0.0), 0.0)
            failures = tl.where(is_available, setting_1 + tl.maximum(observations - clicks, 0.0), 0.0)
            value = beta_draws(successes, failures, seed, run, step, items)
        elif INDEX == _EPSILON_GREEDY:
            value = click_rate(clicks, observations)
        if INDEX == _EPSILON_GREEDY:
            position_of = tl.full((ITEMS,), -1, tl.int32)
            for k in range(length):
                bits = random_word(seed, run, step, EXPLORE, tl.cast(k, tl.int32))
                own_value = tl.where(uniform(bits) < setting_0, 0.0, value)
                key_bits = random_word(seed, run, step, KEYS, items + k * 65536)
                winner = largest(own_value, is_available & (position_of < 0), key_bits, items, ITEMS)
                position_of = tl.where(items == winner, k, position_of)
        else:
            tie_bits = random_word(seed, run, step, TIES, items)
            position_of = place_largest(value, is_available, tie_bits, items, length, ITEMS)
        if BEST_LAST:
            position_of = tl.where(position_of >= 0, length - 1 - position_of, -1)

        marks, first_click, last_click, reward = walk_list(
            position_of, items, seed, run, step, attraction, after_click, rewards, examination, after_skip, length, width,
            num_columns, COLUMNS,
        )  # fmt: skip
        if INDEX != _RANDOM:
            examined = num_examined(first_click, last_click, length, FEEDBACK)
            is_seen = (position_of >= 0) & (position_of < examined)
            is_marked = is_seen & is_clicked(marks, position_of)
            if FEEDBACK == _LAST_CLICK:
                is_marked = is_marked & (position_of == examined - 1)
            if FORGETS:
                clicks *= discount
                observations *= discount
            if window > 0:
                slot = recent + (place_of_run * window + (step - 1) % window) * num_items + items
                left = tl.load(slot, mask=is_item & (step > window), other=0)
                observations -= tl.where(left > 0, 1.0, 0.0)
                clicks -= tl.where(left > 1, 1.0, 0.0)
                tl.store(slot, is_seen.to(tl.int8) + is_marked.to(tl.int8), mask=is_item)
            clicks += tl.where(is_marked, 1.0, 0.0)
            observations += tl.where(is_seen, 1.0, 0.0)

        total += best_reward - reward
        if wanted_now < num_wanted:
            if step == tl.load(wanted + wanted_now):
                tl.store(regrets + place_of_run * num_wanted + wanted_now, total)
                wanted_now += 1
        if TRACE:
            traced = place_of_run * num_traced + step - 1
            tl.store(shown_positions + traced * num_items + items, position_of, mask=is_item)
            tl.store(shown_clicks + traced, marks)
    tl.store(clicks_of + own + items, clicks, mask=is_item)
    tl.store(observations_of + own + items, observations, mask=is_item)
    tl.store(regret_of + place_of_run, total)
