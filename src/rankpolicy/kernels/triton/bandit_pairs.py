"""Bandits that compare pairs of items, TopRank and BubbleRank, simulated on a GPU; kernels/bandits/pairs.py is the specification.

In memory a run has differences of clicks and numbers of lists (item, item), and after the differences, for TopRank a table [j, i] of
whether i is worse than j, for BubbleRank a row with the place of each item in the leading ranking.
"""

from __future__ import annotations

import triton
import triton.language as tl

from rankpolicy.kernels.bandits.memory import TOP_RANK_CONSTANT
from rankpolicy.kernels.triton.bandit_codes import NUMBERS, TOP_RANK
from rankpolicy.kernels.triton.bandit_indices import EXPLORE, TIES, random_word, uniform
from rankpolicy.kernels.triton.bandit_lists import is_clicked, place_largest, walk_list

_TOP_RANK, _CONSTANT = tl.constexpr(TOP_RANK), tl.constexpr(TOP_RANK_CONSTANT)


@triton.jit(do_not_specialize=NUMBERS)
def pairs_kernel(
    attraction, examination, after_click, rewards, available, best, wanted, regrets, clicks_of, observations_of, regret_of,
    numbers, seeds, recent, shown_positions, shown_clicks,
    first_run, first_step, end_step, first_wanted, num_wanted, num_items, num_tables, length, width, num_columns, is_first,
    num_settings, window, num_traced,
    INDEX: tl.constexpr, FEEDBACK: tl.constexpr, BEST_LAST: tl.constexpr, FORGETS: tl.constexpr,
    ITEMS: tl.constexpr, COLUMNS: tl.constexpr, TABLES: tl.constexpr, TRACE: tl.constexpr,
):  # fmt: skip
    """Some steps of one run. Lists of single items, before the first step, teach these bandits nothing."""
    place_of_run = tl.program_id(0).to(tl.int64)
    run = first_run + tl.program_id(0)
    items = tl.arange(0, ITEMS)
    is_item = items < num_items
    is_available = tl.load(available + items, mask=is_item, other=0) != 0
    num_available = tl.sum(is_available.to(tl.int32), 0)
    after_skip = tl.load(numbers)
    failure = tl.load(numbers + 2)
    seed = tl.load(seeds)
    best_reward = tl.load(best)
    differences = clicks_of + place_of_run * num_tables * num_items
    differents = observations_of + place_of_run * num_tables * num_items
    others = differences + num_items * num_items
    total = tl.load(regret_of + place_of_run)
    wanted_now = first_wanted
    place = tl.load(others + items, mask=is_item, other=0.0)
    if first_step == 1:
        place = tl.load(numbers + 3 + items, mask=is_item, other=0.0)
    for number in range(end_step - first_step):
        step = tl.cast(first_step, tl.int64) + number
        tie_bits = random_word(seed, run, step, TIES, items)
        block_of = tl.zeros((ITEMS,), tl.int32)
        partner = tl.full((ITEMS,), -1, tl.int32)
        if INDEX == _TOP_RANK:
            block_of = blocks(others, items, is_item, is_available, num_items, length, ITEMS)
            position_of = place_largest(
                -block_of.to(tl.float64), is_available & (block_of > 0), tie_bits, items, length, ITEMS
            )
        else:
            num_shown = tl.minimum(length + 1, num_available)  # and the item that may enter from below
            position_of = place_largest(-place, is_available, tie_bits, items, num_shown, ITEMS)
            bound = 2.0 * tl.sqrt(-tl.log(failure))
            for k in range(num_shown - 1):
                upper = tl.sum(tl.where(position_of == k, items, 0), 0)
                lower = tl.sum(tl.where(position_of == k + 1, items, 0), 0)
                if is_better(differences, differents, lower, upper, num_items, bound):
                    upper_place = tl.sum(tl.where(items == upper, place, 0.0), 0)
                    lower_place = tl.sum(tl.where(items == lower, place, 0.0), 0)
                    place = tl.where(items == upper, lower_place, tl.where(items == lower, upper_place, place))
                    position_of = tl.where(items == upper, k + 1, tl.where(items == lower, k, position_of))
            parity = ((step - 1) % 2).to(tl.int32)
            for pair in range((num_shown - parity) // 2):
                k = parity + 2 * pair
                upper = tl.sum(tl.where(position_of == k, items, 0), 0)
                lower = tl.sum(tl.where(position_of == k + 1, items, 0), 0)
                if is_better(differences, differents, upper, lower, num_items, bound) == 0:
                    partner = tl.where(items == upper, lower, tl.where(items == lower, upper, partner))
                    if uniform(random_word(seed, run, step, EXPLORE, k)) < 0.5:
                        position_of = tl.where(items == upper, k + 1, tl.where(items == lower, k, position_of))
            position_of = tl.where(position_of < length, position_of, -1)

        marks, _first_click, _last_click, reward = walk_list(
            position_of, items, seed, run, step, attraction, after_click, rewards, examination, after_skip, length, width,
            num_columns, COLUMNS,
        )  # fmt: skip
        was_clicked = is_clicked(marks, position_of)
        if INDEX == _TOP_RANK:
            for k in range(length):
                if ((marks >> k) & 1) != 0:
                    item = tl.sum(tl.where(position_of == k, items, 0), 0)
                    own_block = tl.sum(tl.where(items == item, block_of, 0), 0)
                    is_beaten = is_item & (block_of == own_block) & ~was_clicked
                    gap, lists = compare(differences, differents, item, items, is_beaten, 1.0, num_items)
                    log = tl.log(tl.sqrt(tl.where(is_beaten, lists, 1.0)) * (_CONSTANT / failure))
                    is_worse = is_beaten & (gap >= tl.sqrt(2.0 * lists * log))
                    tl.store(others + item * num_items + items, tl.full((ITEMS,), 1.0, tl.float64), mask=is_worse)
        else:
            marked = was_clicked.to(tl.float64)
            for k in range(length):
                item = tl.sum(tl.where(position_of == k, items, 0), 0)
                other = tl.sum(tl.where(items == item, partner, 0), 0)
                where_other = tl.sum(tl.where(items == other, position_of, 0), 0)
                # Each pair once, from the upper of its places; of a pair at the end only one item is shown.
                if (other >= 0) & ((where_other == k + 1) | (where_other < 0)):
                    gap = tl.sum(tl.where(items == item, marked, tl.where(items == other, -marked, 0.0)), 0)
                    if gap != 0.0:
                        compare(differences, differents, item, items, items == other, gap, num_items)
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
    if INDEX != _TOP_RANK:
        tl.store(others + items, place, mask=is_item)
    tl.store(regret_of + place_of_run, total)


@triton.jit
def is_better(differences, differents, item, other, num_items, bound):
    """Whether an item is better than another with confidence (0 or 1)."""
    place = item * num_items + other
    return (tl.load(differences + place) > bound * tl.sqrt(tl.load(differents + place))).to(tl.int32)


@triton.jit
def compare(differences, differents, item, items, is_other, gap, num_items):
    """Count one more list in which an item was clicked more (gap 1) or less (-1) than others.

    Returns the differences and the numbers of lists so far.
    """
    row = item * num_items + items
    column = items * num_items + item
    own = tl.load(differences + row, mask=is_other, other=0.0) + gap
    lists = tl.load(differents + row, mask=is_other, other=0.0) + 1.0
    tl.store(differences + row, own, mask=is_other)
    tl.store(differences + column, -own, mask=is_other)
    tl.store(differents + row, lists, mask=is_other)
    tl.store(differents + column, lists, mask=is_other)
    return own, lists


@triton.jit
def blocks(worse, items, is_item, is_available, num_items, length, ITEMS: tl.constexpr):
    """The block of each item (item,), from 1, as far down as a list shows; 0 for others.

    The first block holds the items that none is known to beat, the next one those of the remaining items.
    """
    block_of = tl.zeros((ITEMS,), tl.int32)
    num_placed = tl.cast(0, tl.int32)
    block = tl.cast(0, tl.int32)
    while num_placed < length:
        block += 1
        is_left = is_available & (block_of == 0)
        is_beaten = tl.zeros((ITEMS,), tl.int32)
        for other in range(num_items):
            other_is_left = tl.sum((is_left & (items == other)).to(tl.int32), 0)
            row = tl.load(worse + other * num_items + items, mask=is_item, other=0.0)
            is_beaten = tl.where((row > 0.0) & (other_is_left > 0), 1, is_beaten)
        is_best = is_left & (is_beaten == 0)
        # All of them in a cycle, which only false conclusions can close.
        is_best = tl.where(tl.sum(is_best.to(tl.int32), 0) > 0, is_best, is_left)
        block_of = tl.where(is_best, block, block_of)
        num_placed += tl.sum(is_best.to(tl.int32), 0)
    return block_of
