"""Bandits that learn the attraction of items, and at which positions users stop, at the same time.

With K = cutoff, statistics (1 + 2 K, item, 2) are sums over lists, by the item that was shown:

    table 0        expected clicks and examinations of the item, given the clicks (the E step of the DCM)
    table 1 + k    position k was clicked: lists with another click below, and the sum of P(a click below | the user did not stop)
    table 1 + K + k    nothing was clicked above position k: clicks there, and the sum of the attractions shown there

The first number of tables 1 + k, summed over items, is (1 - v(k)) times the second in expectation. That of tables 1 + K + k is P(examined)
times the second, and P(examined) is 1 for DCM users.
"""

import numpy as np

from rankpolicy.kernels.bandits.counts import count, num_examined, place_in_order, place_largest
from rankpolicy.kernels.bandits.memory import CLICKS, OBSERVATIONS
from rankpolicy.kernels.bandits.step import compiled, learn_step

PRIOR_WEIGHT = 4.0  # expected clicks with which each position starts at the value that all positions have in common
# Click rate relative to the top at which a position counts for nothing. Users of a DCM have 1; with 2/3 no kind of user in
# reproductions/dcm/robustness.py leads to more regret than dcmKL-UCB has, with 0 those who look less at lower positions do.
LEAST_CLICK_RATE = 2.0 / 3.0


@compiled
def attraction_mean(memory, item):
    return (memory.statistics[0, item, CLICKS] + 0.5) / (memory.statistics[0, item, OBSERVATIONS] + 1.0)


@compiled
def position_counts(memory, table):
    """Observed and expected clicks, summed over items."""
    observed, expected = 0.0, 0.0
    for item in range(memory.statistics.shape[1]):
        observed += memory.statistics[table, item, CLICKS]
        expected += memory.statistics[table, item, OBSERVATIONS]
    return observed, expected


@compiled
def fill_continuation(memory, continuation):
    """1 - v(k) of each position, drawn towards that of all positions together, which serves where little is known."""
    observed, expected = np.empty(len(continuation)), np.empty(len(continuation))
    for k in range(len(continuation)):
        observed[k], expected[k] = position_counts(memory, 1 + k)
    pooled = min(1.0, (1.0 + observed.sum()) / (1.0 + expected.sum()))
    for k in range(len(continuation)):
        continuation[k] = min(1.0, (observed[k] + PRIOR_WEIGHT * pooled) / (expected[k] + PRIOR_WEIGHT))


@learn_step
def learn_attraction_and_stops(memory, ranking, clicks, weight):
    """One E step under the means so far: items below the last click were examined if the user went on."""
    length, num_positions = len(ranking), len(memory.statistics) // 2
    examined = num_examined(memory, clicks)
    attraction, silent = np.empty(length), np.ones(length + 1)  # silent: P(no click from this position on | examined)
    for k in range(length - 1, -1, -1):
        attraction[k] = attraction_mean(memory, ranking[k])
        silent[k] = silent[k + 1] * (1.0 - attraction[k])
    continuation = np.empty(num_positions)
    fill_continuation(memory, continuation)
    last = -1
    for k in range(examined):
        if last < 0:
            memory.statistics[1 + num_positions + k, ranking[k], CLICKS] += weight * clicks[k]
            memory.statistics[1 + num_positions + k, ranking[k], OBSERVATIONS] += weight * attraction[k]
        if clicks[k] == 1:
            last = k
            # Nothing can follow the last position, so v is never learned there: both columns stay 0.
            memory.statistics[1 + k, ranking[k], CLICKS] += weight * (k < examined - 1)
            memory.statistics[1 + k, ranking[k], OBSERVATIONS] += weight * (1.0 - silent[k + 1])
        count(memory, 0, ranking[k], weight, clicks[k])
    if last >= 0:
        went_on = continuation[last] * silent[last + 1]
        share = went_on / (1.0 - continuation[last] + went_on)
        for k in range(last + 1, length):
            count(memory, 0, ranking[k], weight * share, 0.0)


@compiled
def fill_learned_order(memory, order):
    """Positions by v times a factor, the largest first; the last position stays last.

    The factor is 1 for DCM users. Where users look less at lower positions (PBM) or leave (CCM, DBN), silence after a click looks like v
    ascending; but then lower positions also have fewer clicks where nothing was clicked above, and the factor falls to 0 with them.
    """
    num_positions = len(order)
    continuation, values = np.empty(len(memory.statistics) // 2), np.empty(num_positions)
    fill_continuation(memory, continuation)
    rate_at_top = 1.0
    for k in range(num_positions):
        observed, expected = position_counts(memory, 1 + len(continuation) + k)
        click_rate = (observed + PRIOR_WEIGHT) / (expected + PRIOR_WEIGHT)
        if k == 0:
            rate_at_top = click_rate
        trust = (min(1.0, click_rate / rate_at_top) - LEAST_CLICK_RATE) / (1.0 - LEAST_CLICK_RATE)
        values[k] = (1.0 - continuation[k]) * max(0.0, trust)
    values[num_positions - 1] = -1.0
    for k in range(num_positions):
        above = k  # insertion: equal values keep the order of positions
        while above > 0 and values[k] > values[order[above - 1]]:
            order[above] = order[above - 1]
            above -= 1
        order[above] = k


@compiled
def place_by_learned_order(memory, indices, available, generator, ranking):
    """The k-th largest index goes to the position of the k-th largest value."""
    place_largest(indices, available, generator, ranking)
    order = np.empty(len(ranking), np.int64)
    fill_learned_order(memory, order)
    place_in_order(order, ranking)
