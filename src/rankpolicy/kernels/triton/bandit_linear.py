"""Bandits with features of items, LinUCB and linear Thompson sampling, simulated on a GPU; kernels/bandits/linear.py is the specification.

In memory a run has the posterior covariance (feature, feature), then b (feature,); a launch holds them in registers. Settings are the
variance of the noise, the scale of exploration, the prior variance and the features (item, feature).
"""

from __future__ import annotations

import triton
import triton.language as tl

from rankpolicy.kernels.bandits import memory
from rankpolicy.kernels.triton.bandit_codes import LIN_UCB, NUMBERS
from rankpolicy.kernels.triton.bandit_indices import FREE, SUCCESSES, TIES, random_bits, random_word, uniform
from rankpolicy.kernels.triton.bandit_lists import is_clicked, num_examined, place_largest, walk_list

_LIN_UCB, _LAST_CLICK = tl.constexpr(LIN_UCB), tl.constexpr(memory.LAST_CLICK)


@triton.jit(do_not_specialize=NUMBERS)
def linear_kernel(
    attraction, examination, after_click, rewards, available, best, wanted, regrets, clicks_of, observations_of, regret_of,
    numbers, seeds, recent, shown_positions, shown_clicks,
    first_run, first_step, end_step, first_wanted, num_wanted, num_items, num_tables, length, width, num_columns, is_first,
    num_settings, window, num_traced,
    INDEX: tl.constexpr, FEEDBACK: tl.constexpr, BEST_LAST: tl.constexpr, FORGETS: tl.constexpr,
    ITEMS: tl.constexpr, COLUMNS: tl.constexpr, TABLES: tl.constexpr, TRACE: tl.constexpr,
):  # fmt: skip
    """Some steps of one run; TABLES is a power of two that all features fit into."""
    place_of_run = tl.program_id(0).to(tl.int64)
    run = first_run + tl.program_id(0)
    items = tl.arange(0, ITEMS)
    features = tl.arange(0, TABLES)
    is_item = items < num_items
    is_available = tl.load(available + items, mask=is_item, other=0) != 0
    num_features = (num_settings - 3) // num_items
    is_feature = features < num_features
    after_skip = tl.load(numbers)
    noise = tl.load(numbers + 2)
    scale = tl.load(numbers + 3)
    rows = numbers + 5
    x = tl.load(
        rows + items[:, None] * num_features + features[None, :],
        mask=is_item[:, None] & is_feature[None, :],
        other=0.0,
    )
    seed = tl.load(seeds)
    best_reward = tl.load(best)
    own = clicks_of + place_of_run * num_tables * num_items
    cells = features[:, None] * num_features + features[None, :]
    is_cell = is_feature[:, None] & is_feature[None, :]
    covariance = tl.load(own + cells, mask=is_cell, other=0.0)
    b = tl.load(own + num_features * num_features + features, mask=is_feature, other=0.0)
    total = tl.load(regret_of + place_of_run)
    wanted_now = first_wanted
    if first_step == 1:
        covariance = tl.where(is_cell & (features[:, None] == features[None, :]), tl.load(numbers + 4), 0.0)
    if is_first != 0:
        # Every item is shown once, alone, one after the other.
        drawn = random_word(seed, run, tl.cast(0, tl.int64), FREE, items)
        chance = tl.load(examination) * tl.load(attraction + items, mask=is_item, other=0.0)
        free_clicks = (is_available & (uniform(drawn) < chance)).to(tl.float64)
        for item in range(num_items):
            if tl.sum((is_available & (items == item)).to(tl.int32), 0) > 0:
                click = tl.sum(tl.where(items == item, free_clicks, 0.0), 0)
                covariance, b = observed(covariance, b, rows, item, click, noise, num_features, TABLES)
    for number in range(end_step - first_step):
        step = tl.cast(first_step, tl.int64) + number
        parameter = tl.sum(covariance * b[None, :], 1) / noise
        if INDEX == _LIN_UCB:
            value = tl.sum(x * along_columns(parameter, features, TABLES), 1)
            variance = tl.zeros((ITEMS,), tl.float64)
            for feature in range(num_features):
                column = tl.sum(tl.where(features[:, None] == feature, covariance, 0.0), 0)
                of_feature = tl.sum(tl.where(features[None, :] == feature, x, 0.0), 1)
                variance += tl.sum(x * column[None, :], 1) * of_feature
            value += scale * tl.sqrt(tl.maximum(variance, 0.0))
        else:
            # L z for the Cholesky factor L of the covariance: one column after the other is split off.
            first, second, _third, _fourth = random_bits(seed, run, step, SUCCESSES, features)
            normal = tl.sqrt(-2.0 * tl.log(uniform(first))) * tl.cos(6.283185307179586 * uniform(second))
            rest = covariance
            for feature in range(num_features):
                pivot = tl.sum(
                    tl.sum(tl.where((features[:, None] == feature) & (features[None, :] == feature), rest, 0.0), 1), 0
                )
                root = tl.sqrt(tl.maximum(pivot, 0.0))
                divisor = tl.where(root > 0.0, root, 1.0)
                is_kept = tl.where(root > 0.0, 1.0, 0.0)
                down = tl.sum(tl.where(features[None, :] == feature, rest, 0.0), 1) / divisor * is_kept
                across = tl.sum(tl.where(features[:, None] == feature, rest, 0.0), 0) / divisor * is_kept
                down = tl.where(features >= feature, down, 0.0)
                across = tl.where(features >= feature, across, 0.0)
                parameter += scale * down * tl.sum(tl.where(features == feature, normal, 0.0), 0)
                rest -= down[:, None] * across[None, :]
            value = tl.sum(x * along_columns(parameter, features, TABLES), 1)

        tie_bits = random_word(seed, run, step, TIES, items)
        position_of = place_largest(value, is_available, tie_bits, items, length, ITEMS)
        if BEST_LAST:
            position_of = tl.where(position_of >= 0, length - 1 - position_of, -1)
        marks, first_click, last_click, reward = walk_list(
            position_of, items, seed, run, step, attraction, after_click, rewards, examination, after_skip, length, width,
            num_columns, COLUMNS,
        )  # fmt: skip
        examined = num_examined(first_click, last_click, length, FEEDBACK)
        is_marked = is_clicked(marks, position_of)
        if FEEDBACK == _LAST_CLICK:
            is_marked = is_marked & (position_of == examined - 1)
        for k in range(examined):
            shown = tl.sum(tl.where(position_of == k, items, 0), 0)
            mark = tl.sum((is_marked & (position_of == k)).to(tl.float64), 0)
            covariance, b = observed(covariance, b, rows, shown, mark, noise, num_features, TABLES)

        total += best_reward - reward
        if wanted_now < num_wanted:
            if step == tl.load(wanted + wanted_now):
                tl.store(regrets + place_of_run * num_wanted + wanted_now, total)
                wanted_now += 1
        if TRACE:
            traced = place_of_run * num_traced + step - 1
            tl.store(shown_positions + traced * num_items + items, position_of, mask=is_item)
            tl.store(shown_clicks + traced, marks)
    tl.store(own + cells, covariance, mask=is_cell)
    tl.store(own + num_features * num_features + features, b, mask=is_feature)
    tl.store(regret_of + place_of_run, total)


@triton.jit
def along_columns(vector, features, TABLES: tl.constexpr):
    """A vector (feature,) as a row (1, feature), whatever axis it was summed along."""
    is_diagonal = features[:, None] == features[None, :]
    return tl.sum(tl.where(is_diagonal, vector[:, None], 0.0), 0)[None, :]


@triton.jit
def observed(covariance, b, rows, item, click, noise, num_features, TABLES: tl.constexpr):
    """b += click x; covariance -= (covariance x) (covariance x)' / (noise variance + x' covariance x)."""
    features = tl.arange(0, TABLES)
    x = tl.load(rows + item * num_features + features, mask=features < num_features, other=0.0)
    down = tl.sum(covariance * x[None, :], 1)
    across = tl.sum(covariance * x[:, None], 0)
    factor = 1.0 / (noise + tl.sum(x * across, 0))
    return covariance - factor * down[:, None] * across[None, :], b + click * x
