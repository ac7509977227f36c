"""Bandits with counts for every position, or for every position and last click above it, simulated on a GPU.

The counts (table, item) of a run lie in memory. The specifications are kernels/bandits/index.py (ranked-kl-ucb), exp3.py and
examination.py.
"""

from __future__ import annotations

import triton
import triton.language as tl

from rankpolicy.kernels.bandits.memory import NEVER_OBSERVED, NUM_ROUNDS
from rankpolicy.kernels.triton.bandit_codes import (
    NUMBERS,
    PBM_PIE,
    PBM_TS,
    PBM_UCB,
    RANKED_EXP3,
    RANKED_KL_UCB,
    UBM_TS,
    UBM_UCB,
)
from rankpolicy.kernels.triton.bandit_indices import (
    EXPLORE,
    FREE,
    KEYS,
    TIES,
    beta_draws,
    kl_ucb,
    kl_ucb_threshold,
    random_word,
    uniform,
)
from rankpolicy.kernels.triton.bandit_lists import is_clicked, largest, num_examined, place_largest, walk_list

_RANKED_KL_UCB, _RANKED_EXP3 = tl.constexpr(RANKED_KL_UCB), tl.constexpr(RANKED_EXP3)
_PBM_UCB, _PBM_TS, _PBM_PIE, _UBM_UCB, _UBM_TS = (
    tl.constexpr(code) for code in (PBM_UCB, PBM_TS, PBM_PIE, UBM_UCB, UBM_TS)
)
_NEVER_OBSERVED, _NUM_ROUNDS = tl.constexpr(NEVER_OBSERVED), tl.constexpr(NUM_ROUNDS)


@triton.jit(do_not_specialize=NUMBERS)
def tables_kernel(
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
    setting_0 = tl.load(numbers + 2)
    seed = tl.load(seeds)
    best_reward = tl.load(best)
    clicks_of += place_of_run * num_tables * num_items
    observations_of += place_of_run * num_tables * num_items
    total = tl.load(regret_of + place_of_run)
    wanted_now = first_wanted
    if is_first != 0:
        # Every item is shown once, alone, at the first position. Exp3 learns only from lists of its own.
        if INDEX != _RANKED_EXP3:
            drawn = random_word(seed, run, tl.cast(0, tl.int64), FREE, items)
            chance = tl.load(examination) * tl.load(attraction + items, mask=is_item, other=0.0)
            was_clicked = is_available & (uniform(drawn) < chance)
            tl.store(clicks_of + items, tl.where(was_clicked, 1.0, 0.0), mask=is_item)
            tl.store(observations_of + items, tl.where(is_available, 1.0, 0.0), mask=is_item)
        tl.debug_barrier()
    for number in range(end_step - first_step):
        step = tl.cast(first_step, tl.int64) + number
        time = step.to(tl.float64)
        tie_bits = random_word(seed, run, step, TIES, items)
        propensity = tl.full((ITEMS,), 1.0, tl.float64)
        if (INDEX == _RANKED_KL_UCB) | (INDEX == _RANKED_EXP3):
            threshold = kl_ucb_threshold(time, setting_0)
            position_of = tl.full((ITEMS,), -1, tl.int32)
            for k in range(length):
                is_left = is_available & (position_of < 0)
                row = tl.load(clicks_of + k * num_items + items, mask=is_item, other=0.0)
                # Of every position its own: items that lost a draw above must not lose this one more often.
                bits = random_word(seed, run, step, KEYS, items + k * 65536)
                if INDEX == _RANKED_KL_UCB:
                    shown = tl.load(observations_of + k * num_items + items, mask=is_item, other=0.0)
                    winner = largest(kl_ucb(row, shown, threshold), is_left, bits, items, ITEMS)
                else:
                    num_left = tl.maximum(num_available - k, 1).to(tl.float64)
                    rate = tl.sqrt(tl.log(tl.maximum(num_left, 2.0)) / (num_left * time))
                    least = tl.min(tl.where(is_left, row, float("inf")), 0)
                    log_weight = -rate * (row - least)
                    weight = tl.where(is_left, tl.exp(tl.where(is_left, log_weight, 0.0)), 0.0)
                    # The largest of log weights with Gumbel noise is a draw by weight.
                    noisy = log_weight - tl.log(-tl.log(uniform(bits)))
                    winner = largest(noisy, is_left, tie_bits, items, ITEMS)
                    propensity = tl.where(items == winner, weight / tl.sum(weight, 0), propensity)
                position_of = tl.where(items == winner, k, position_of)
        else:
            position_of = place_where_examined(
                clicks_of, observations_of, numbers + 2, time, seed, run, step, items, is_item, is_available, tie_bits,
                num_items, num_tables, num_settings, length, INDEX, ITEMS, TABLES,
            )  # fmt: skip

        marks, first_click, last_click, reward = walk_list(
            position_of, items, seed, run, step, attraction, after_click, rewards, examination, after_skip, length, width,
            num_columns, COLUMNS,
        )  # fmt: skip
        is_seen = (position_of >= 0) & (position_of < num_examined(first_click, last_click, length, FEEDBACK))
        table = position_of
        if (INDEX == _UBM_UCB) | (INDEX == _UBM_TS):
            last_above = tl.zeros((ITEMS,), tl.int32)
            for k in range(length):
                last_above = tl.where((position_of > k) & (((marks >> k) & 1) != 0), k + 1, last_above)
            table = position_of * (position_of + 1) // 2 + last_above
        place = table * num_items + items
        is_marked = is_clicked(marks, position_of)
        old_clicks = tl.load(clicks_of + place, mask=is_seen, other=0.0)
        if INDEX == _RANKED_EXP3:
            tl.store(clicks_of + place, old_clicks + tl.where(is_marked, 0.0, 1.0 / propensity), mask=is_seen)
        else:
            old_observations = tl.load(observations_of + place, mask=is_seen, other=0.0)
            tl.store(clicks_of + place, old_clicks + tl.where(is_marked, 1.0, 0.0), mask=is_seen)
            tl.store(observations_of + place, old_observations + 1.0, mask=is_seen)
        # The next list reads what was written here, in other threads.
        tl.debug_barrier()

        total += best_reward - reward
        if wanted_now < num_wanted:
            if step == tl.load(wanted + wanted_now):
                tl.store(regrets + place_of_run * num_wanted + wanted_now, total)
                wanted_now += 1
        if TRACE:
            traced = place_of_run * num_traced + step - 1
            tl.store(shown_positions + traced * num_items + items, position_of, mask=is_item)
            tl.store(shown_clicks + traced, marks)
    tl.store(regret_of + place_of_run, total)


@triton.jit
def place_where_examined(
    clicks_of, observations_of, settings, time, seed, run, step, items, is_item, is_available, tie_bits,
    num_items, num_tables, num_settings, length, INDEX: tl.constexpr, ITEMS: tl.constexpr, TABLES: tl.constexpr,
):  # fmt: skip
    """The list of a bandit for users who examine each cell with some probability: known, or estimated from the bandit's own lists."""
    cells = tl.arange(0, TABLES)
    if num_settings > 3:
        cell_examination = tl.load(settings + 3 + cells, mask=cells < num_tables, other=0.0)
    else:
        cell_examination = estimated_examination(
            clicks_of, observations_of, items, is_item, num_items, num_tables, ITEMS, TABLES
        )
    clicks = tl.zeros((ITEMS,), tl.float64)
    lists = tl.zeros((ITEMS,), tl.float64)
    examined = tl.zeros((ITEMS,), tl.float64)
    for cell in range(num_tables):
        row = tl.load(observations_of + cell * num_items + items, mask=is_item, other=0.0)
        clicks += tl.load(clicks_of + cell * num_items + items, mask=is_item, other=0.0)
        lists += row
        examined += row * tl.sum(tl.where(cells == cell, cell_examination, 0.0), 0)
    safe = tl.where(examined > 0.0, examined, 1.0)
    if (INDEX == _PBM_UCB) | (INDEX == _UBM_UCB):
        threshold = tl.load(settings) * tl.log(time)
        value = tl.where(examined > 0.0, (clicks + tl.sqrt(lists * threshold)) / safe, _NEVER_OBSERVED)
    elif INDEX == _PBM_PIE:
        value = tl.where(examined > 0.0, clicks / safe, _NEVER_OBSERVED)
    else:
        prior_clicks = tl.load(settings)
        prior_skips = tl.load(settings + 1)
        mean = tl.where(examined > 0.0, tl.minimum(clicks / safe, 1.0), 0.0)
        likely = (prior_clicks + mean * examined) / (prior_clicks + prior_skips + examined)
        worth = tl.zeros((ITEMS,), tl.float64)
        for cell in range(num_tables):
            row = tl.load(observations_of + cell * num_items + items, mask=is_item, other=0.0)
            e = tl.sum(tl.where(cells == cell, cell_examination, 0.0), 0)
            worth += row * e * (1.0 - likely) / (1.0 - e * likely)
        a = tl.where(is_available, prior_clicks + worth * mean, 0.0)
        value = beta_draws(a, tl.where(is_available, prior_skips + worth * (1.0 - mean), 0.0), seed, run, step, items)
    rank_of = place_largest(value, is_available, tie_bits, items, length, ITEMS)
    if INDEX == _PBM_PIE:
        # The last leader gives way, every other time, to an item that may be better.
        last = value * 0.0 + tl.sum(tl.where(rank_of == length - 1, value, 0.0), 0)
        threshold = tl.load(settings) * tl.log(time)
        is_rival = is_available & (rank_of < 0) & (last < _NEVER_OBSERVED)
        is_rival = is_rival & may_reach(
            clicks_of, observations_of, cell_examination, tl.minimum(last, 1.0), threshold, items, is_item, num_items,
            num_tables, ITEMS, TABLES,
        )  # fmt: skip
        chance = uniform(random_word(seed, run, step, EXPLORE, tl.cast(0, tl.int32)))
        if (tl.sum(is_rival.to(tl.int32), 0) > 0) & (chance < 0.5):
            rival_bits = random_word(seed, run, step, EXPLORE, items + 1)
            rival = largest(value * 0.0, is_rival, rival_bits, items, ITEMS)
            rank_of = tl.where(items == rival, length - 1, tl.where(rank_of == length - 1, -1, rank_of))
    position_of = rank_of
    if tl.load(settings + 2) != 0.0:
        # The best item where examination is highest, the next where it is next highest.
        cell_bits = random_word(seed, run, step, KEYS, cells)
        is_open = cells < length
        position_of = tl.full((ITEMS,), -1, tl.int32)
        for k in range(length):
            cell = largest(cell_examination, is_open, cell_bits, cells, TABLES)
            is_open = is_open & (cells != cell)
            position_of = tl.where(rank_of == k, cell, position_of)
    return position_of


@triton.jit
def may_reach(
    clicks_of, observations_of, cell_examination, attraction, threshold, items, is_item, num_items, num_tables,
    ITEMS: tl.constexpr, TABLES: tl.constexpr,
):  # fmt: skip
    """Whether the upper confidence bound of each item's attraction is ``attraction`` or more (kernels/bandits/parsimonious.py)."""
    cells = tl.arange(0, TABLES)
    divergence = tl.zeros((ITEMS,), tl.float64)
    slope = tl.zeros((ITEMS,), tl.float64)
    is_sure = tl.zeros((ITEMS,), tl.int32)
    is_ruled_out = tl.zeros((ITEMS,), tl.int32)
    divisor = tl.where(attraction > 0.0, attraction, 1.0)
    for cell in range(num_tables):
        e = tl.sum(tl.where(cells == cell, cell_examination, 0.0), 0)
        chance = e * attraction
        lists = tl.load(observations_of + cell * num_items + items, mask=is_item, other=0.0)
        clicks = tl.minimum(tl.load(clicks_of + cell * num_items + items, mask=is_item, other=0.0), lists)
        skips = lists - clicks
        some = tl.where(lists > 0.0, lists, 1.0)
        is_sure = tl.where((clicks > 0.0) & (chance <= 0.0), 1, is_sure)
        is_ruled_out = tl.where((skips > 0.0) & (chance >= 1.0), 1, is_ruled_out)
        hit = tl.where((clicks > 0.0) & (chance > 0.0), clicks / some / tl.where(chance > 0.0, chance, 1.0), 1.0)
        miss = tl.where((skips > 0.0) & (chance < 1.0), skips / some / tl.where(chance < 1.0, 1.0 - chance, 1.0), 1.0)
        divergence += clicks * tl.log(hit) + skips * tl.log(miss)
        slope += skips * e / tl.where(chance < 1.0, 1.0 - chance, 1.0) - clicks / divisor
    return (is_sure > 0) | ((is_ruled_out == 0) & ((slope <= 0.0) | (divergence <= threshold)))


@triton.jit
def estimated_examination(
    clicks_of, observations_of, items, is_item, num_items, num_tables, ITEMS: tl.constexpr, TABLES: tl.constexpr
):  # fmt: skip
    """Examination of each cell (cell,), 1 at the first, by rounds of attraction = clicks / examined, examination = clicks / attracted."""
    cells = tl.arange(0, TABLES)
    # One imaginary clicked list per cell avoids 0 / 0.
    clicks = tl.full((TABLES,), 1.0, tl.float64)
    lists = tl.full((TABLES,), 1.0, tl.float64)
    of_item = tl.zeros((ITEMS,), tl.float64)
    for cell in range(num_tables):
        row = tl.load(clicks_of + cell * num_items + items, mask=is_item, other=0.0)
        shown = tl.load(observations_of + cell * num_items + items, mask=is_item, other=0.0)
        of_item += row
        clicks += tl.where(cells == cell, tl.sum(row, 0), 0.0)
        lists += tl.where(cells == cell, tl.sum(shown, 0), 0.0)
    at_top = tl.sum(tl.where(cells == 0, lists / clicks, 0.0), 0)
    examination = tl.where(cells < num_tables, tl.minimum(clicks / lists * at_top, 1.0), 0.0)
    for _round in range(_NUM_ROUNDS):
        examined = tl.zeros((ITEMS,), tl.float64)
        for cell in range(num_tables):
            shown = tl.load(observations_of + cell * num_items + items, mask=is_item, other=0.0)
            examined += shown * tl.sum(tl.where(cells == cell, examination, 0.0), 0)
        share = tl.where(examined > 0.0, tl.minimum(of_item / tl.where(examined > 0.0, examined, 1.0), 1.0), 0.0)
        for cell in range(1, num_tables):
            shown = tl.load(observations_of + cell * num_items + items, mask=is_item, other=0.0)
            attracted = 1.0 + tl.sum(shown * share, 0)
            examination = tl.where(cells == cell, tl.minimum(clicks / attracted, 1.0), examination)
    return examination
