"""Bandits for users who walk down the list and may leave at any position, CCM and DBN, simulated on a GPU.

kernels/bandits/chain.py is the specification; the order of its settings, and what its tables count, are explained there. Successes and
trials stay in registers, one lane per item.
"""

from __future__ import annotations

import triton
import triton.language as tl

from rankpolicy.kernels.bandits.memory import ENOUGH_TRIALS
from rankpolicy.kernels.triton.bandit_codes import CCM_TS, DBN_TS, DBN_UCB, NUMBERS
from rankpolicy.kernels.triton.bandit_indices import (
    FREE,
    KEYS,
    TIES,
    beta_draws,
    kl_ucb,
    kl_ucb_threshold,
    random_word,
    uniform,
)
from rankpolicy.kernels.triton.bandit_lists import is_clicked, place_largest, walk_list

_CCM_TS, _DBN_TS, _DBN_UCB = (tl.constexpr(code) for code in (CCM_TS, DBN_TS, DBN_UCB))
_ENOUGH_TRIALS = tl.constexpr(ENOUGH_TRIALS)
_OTHER_TABLE = tl.constexpr(32768)  # so that draws for the second table are others than for the first


@triton.jit(do_not_specialize=NUMBERS)
def chains_kernel(
    attraction, examination, after_click, rewards, available, best, wanted, regrets, clicks_of, observations_of, regret_of,
    numbers, seeds, recent, shown_positions, shown_clicks,
    first_run, first_step, end_step, first_wanted, num_wanted, num_items, num_tables, length, width, num_columns, is_first,
    num_settings, window, num_traced,
    INDEX: tl.constexpr, FEEDBACK: tl.constexpr, BEST_LAST: tl.constexpr, FORGETS: tl.constexpr,
    ITEMS: tl.constexpr, COLUMNS: tl.constexpr, TABLES: tl.constexpr, TRACE: tl.constexpr,
):  # fmt: skip
    """Some steps of one run."""
    place_of_run = tl.program_id(0).to(tl.int64)
    run = first_run + tl.program_id(0)
    items = tl.arange(0, ITEMS)
    is_item = items < num_items
    is_available = tl.load(available + items, mask=is_item, other=0) != 0
    num_available = tl.sum(is_available.to(tl.int32), 0)
    after_skip = tl.load(numbers)
    prior_clicks = tl.load(numbers + 2)
    prior_skips = tl.load(numbers + 3)
    after_none = tl.load(numbers + 4)
    after_a = tl.load(numbers + 5)
    after_b = tl.load(numbers + 6)
    log_log_weight = tl.load(numbers + 7)
    seed = tl.load(seeds)
    best_reward = tl.load(best)
    # CCM has one table, which is the first and the last.
    first_table = place_of_run * num_tables * num_items + items
    last_table = first_table + (num_tables - 1) * num_items
    attracted = tl.load(clicks_of + first_table, mask=is_item, other=0.0)
    examined = tl.load(observations_of + first_table, mask=is_item, other=0.0)
    in_state = tl.load(clicks_of + last_table, mask=is_item, other=0.0)
    of_clicked = tl.load(observations_of + last_table, mask=is_item, other=0.0)
    total = tl.load(regret_of + place_of_run)
    wanted_now = first_wanted
    if is_first != 0:
        # Every item is shown once, alone: nothing can follow, so only attraction is observed.
        drawn = random_word(seed, run, tl.cast(0, tl.int64), FREE, items)
        chance = tl.load(examination) * tl.load(attraction + items, mask=is_item, other=0.0)
        attracted += tl.where(is_available & (uniform(drawn) < chance), 1.0, 0.0)
        examined += tl.where(is_available, 1.0, 0.0)
    for number in range(end_step - first_step):
        step = tl.cast(first_step, tl.int64) + number
        time = step.to(tl.float64)
        has_satisfaction = (INDEX == _DBN_TS) | (INDEX == _DBN_UCB)
        if (INDEX == _CCM_TS) | (INDEX == _DBN_TS):
            a = posterior_draws(attracted, examined, prior_clicks, prior_skips, is_available, seed, run, step, items)
            b = a
            if has_satisfaction:
                b = posterior_draws(
                    in_state, of_clicked, prior_clicks, prior_skips, is_available, seed, run, step, items + _OTHER_TABLE
                )
        else:
            threshold = kl_ucb_threshold(time, log_log_weight)
            a = tl.where(examined > 0.0, kl_ucb(attracted, examined, threshold), 1.0)
            b = a
            if has_satisfaction:
                b = tl.where(of_clicked > 0.0, kl_ucb(in_state, of_clicked, threshold), 1.0)
        mean_attraction = (prior_clicks + attracted) / (prior_clicks + prior_skips + examined)
        mean_state = mean_attraction
        if has_satisfaction:
            mean_state = (prior_clicks + in_state) / (prior_clicks + prior_skips + of_clicked)

        earned = a
        if has_satisfaction:
            earned = a * b
        passed = (1.0 - a) * after_none + a * ((1.0 - b) * after_a + b * after_b)
        rest = 1.0 - passed
        priority = earned / tl.where(rest > 1e-12, rest, rest * 0.0 + 1e-12)
        tie_bits = random_word(seed, run, step, TIES, items)
        order_bits = random_word(seed, run, step, KEYS, items)
        is_chosen = place_largest(earned, is_available, tie_bits, items, length, ITEMS) >= 0
        position_of = place_largest(priority, is_chosen, order_bits, items, length, ITEMS)
        if has_satisfaction:
            if num_available > length:
                is_left_out = is_available & ~is_chosen
                hoped = tl.max(tl.where(is_left_out, earned, float("-inf")), 0)
                believed = tl.max(tl.where(is_left_out, mean_attraction * mean_state, 0.0), 0)
                sure = a * mean_state
                is_new = of_clicked < _ENOUGH_TRIALS * tl.log(time)
                is_uncertain = is_chosen & ((sure < believed) | ((sure < hoped) & is_new))
                position_of = uncertain_first(position_of, is_uncertain, of_clicked, length, ITEMS)

        marks, _first_click, last_click, reward = walk_list(
            position_of, items, seed, run, step, attraction, after_click, rewards, examination, after_skip, length, width,
            num_columns, COLUMNS,
        )  # fmt: skip

        # P(no click below the item | the position below it is examined).
        silent_below = tl.zeros((ITEMS,), tl.float64)
        silent = tl.cast(1.0, tl.float64)
        for back in range(length):
            is_here = position_of == length - 1 - back
            silent_below = tl.where(is_here, silent, silent_below)
            mean = tl.sum(tl.where(is_here, mean_attraction, 0.0), 0)
            silent = (1.0 - mean) * (1.0 - after_none + after_none * silent)
        was_clicked = is_clicked(marks, position_of)
        is_above = (position_of >= 0) & (position_of < last_click)
        is_last = is_above & (position_of == last_click - 1)
        silent_a = 1.0 - after_a + after_a * silent_below
        silent_b = 1.0 - after_b + after_b * silent_below
        silence = mean_state * silent_b + (1.0 - mean_state) * silent_a
        spread = silence * (1.0 - silence)
        apart = silent_b - silent_a
        told = mean_state * (1.0 - mean_state) * apart * apart / tl.where(spread > 0.0, spread, 1.0)
        told = tl.where(was_clicked & (spread > 0.0), told, 0.0)
        from_a = tl.where(is_last, silent_a, after_a)
        from_b = tl.where(is_last, silent_b, after_b)
        evidence = mean_state * from_b + (1.0 - mean_state) * from_a
        safe = tl.where(evidence > 0.0, evidence, 1.0)
        share = tl.where(evidence > 0.0, mean_state * from_b / safe, mean_state)
        going = (mean_state * after_b + (1.0 - mean_state) * after_a) * silent_below
        still = tl.sum(tl.where(is_last, tl.where(evidence > 0.0, going / safe, 1.0), 0.0), 0)
        still = tl.where(last_click > 0, still, 1.0)
        trials = tl.where(is_above, 1.0, 0.0).to(tl.float64)
        for k in range(length):
            is_here = (position_of == k) & (k >= last_click)
            trials = tl.where(is_here, still, trials)
            onwards = after_none * tl.sum(tl.where(is_here, silent_below, 0.0), 0)
            whole = 1.0 - after_none + onwards
            factor = tl.where(whole > 0.0, onwards / tl.where(whole > 0.0, whole, 1.0), 0.0)
            still = tl.where(k >= last_click, still * factor, still)
        examined += trials
        attracted += tl.where(is_above & was_clicked, 1.0, 0.0)
        if has_satisfaction:
            in_state += told * share
            of_clicked += told
        else:
            attracted += told * share
            examined += told

        total += best_reward - reward
        if wanted_now < num_wanted:
            if step == tl.load(wanted + wanted_now):
                tl.store(regrets + place_of_run * num_wanted + wanted_now, total)
                wanted_now += 1
        if TRACE:
            traced = place_of_run * num_traced + step - 1
            tl.store(shown_positions + traced * num_items + items, position_of, mask=is_item)
            tl.store(shown_clicks + traced, marks)
    if (INDEX == _DBN_TS) | (INDEX == _DBN_UCB):
        tl.store(clicks_of + last_table, in_state, mask=is_item)
        tl.store(observations_of + last_table, of_clicked, mask=is_item)
    tl.store(clicks_of + first_table, attracted, mask=is_item)
    tl.store(observations_of + first_table, examined, mask=is_item)
    tl.store(regret_of + place_of_run, total)


@triton.jit
def posterior_draws(successes, trials, prior_clicks, prior_skips, is_available, seed, run, step, items):
    """A draw of each probability from its Beta posterior."""
    a = tl.where(is_available, prior_clicks + successes, 0.0)
    b = tl.where(is_available, prior_skips + trials - successes, 0.0)
    return beta_draws(a, b, seed, run, step, items)


@triton.jit
def uncertain_first(position_of, is_uncertain, trials, length, ITEMS: tl.constexpr):
    """The list with its uncertain items first; if all are uncertain, the one with most trials goes last."""
    most = tl.cast(0, tl.int32)
    most_trials = tl.cast(-1.0, tl.float64)
    num_uncertain = tl.sum(is_uncertain.to(tl.int32), 0)
    for k in range(length):
        own = tl.sum(tl.where(position_of == k, trials, 0.0), 0)
        most = tl.where(own >= most_trials, k, most)
        most_trials = tl.where(own >= most_trials, own, most_trials)
    is_uncertain = is_uncertain & ((num_uncertain < length) | (position_of != most))
    below = tl.sum(is_uncertain.to(tl.int32), 0)
    top = tl.cast(0, tl.int32)
    moved = position_of
    for k in range(length):
        is_here = position_of == k
        is_one = tl.sum((is_here & is_uncertain).to(tl.int32), 0)
        moved = tl.where(is_here, tl.where(is_one > 0, top, below), moved)
        top += is_one
        below += 1 - is_one
    return moved
