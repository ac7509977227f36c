"""Bandits for users who walk down the list and may leave at any position: CCM and DBN.

After no click the user continues with probability settings[2]. After a click the user is in state A, or with an item-specific
probability in state B, and continues with probability settings[3] from A and settings[4] from B. DBN: B means satisfied, and the
session ends. CCM: B means that the item was relevant. Statistics (table, item, 2): successes and trials, both expectations given the
clicks under the means so far. Table 0 counts attracted of examined, the last table counts state B of clicked, as far as clicks can tell
the states apart. CCM has one table, because its probability of state B is the attraction. settings[0] and settings[1] are the Beta prior
of all probabilities; for KL-UCB settings[5] is the weight of log log t.
"""

import math

import numpy as np

from rankpolicy.kernels.bandits.counts import current_time, place_largest
from rankpolicy.kernels.bandits.formulas import kl_ucb_index
from rankpolicy.kernels.bandits.step import compiled, learn_step, rank_step

SUCCESSES, TRIALS = 0, 1
# Factor of log t: so many trials leave a mean that is far wrong with a probability that falls with t.
ENOUGH_TRIALS = 4.0


@compiled
def posterior_mean(memory, table, item):
    successes, trials = memory.statistics[table, item, SUCCESSES], memory.statistics[table, item, TRIALS]
    return (memory.settings[0] + successes) / (memory.settings[0] + memory.settings[1] + trials)


@compiled
def posterior_draw(memory, table, item, generator):
    successes, trials = memory.statistics[table, item, SUCCESSES], memory.statistics[table, item, TRIALS]
    return generator.beta(memory.settings[0] + successes, memory.settings[1] + trials - successes)


@compiled
def add_observation(memory, table, item, success, trial):
    memory.statistics[table, item, SUCCESSES] += success
    memory.statistics[table, item, TRIALS] += trial


@compiled
def information_about_state(in_b, silent_a, silent_b):
    """How much of a sure observation of the state after a click it is to see whether clicks follow: 0 to 1.

    The share of the state's variance that this explains, b (1 - b) (P(silence | A) - P(silence | B))^2 / (P(silence) (1 - P(silence))).
    It is 0 at the last position, where no click can follow, and wherever both states lead to clicks alike.
    """
    silence = in_b * silent_b + (1.0 - in_b) * silent_a
    spread = silence * (1.0 - silence)
    return in_b * (1.0 - in_b) * (silent_b - silent_a) ** 2 / spread if spread > 0.0 else 0.0


@learn_step
def learn_chain(memory, ranking, clicks, weight):
    """One E step over the list: how far the user went below the last click, and in which state, expected under the means so far."""
    after_none, after_a, after_b = memory.settings[2], memory.settings[3], memory.settings[4]
    length, states = len(ranking), len(memory.statistics) - 1
    silent = np.ones(length + 1)  # P(no click from this position on | it is examined)
    last = -1
    for k in range(length - 1, -1, -1):
        no_more_clicks = 1.0 - after_none + after_none * silent[k + 1]
        silent[k] = (1.0 - posterior_mean(memory, 0, ranking[k])) * no_more_clicks
        if clicks[k] == 1 and last < 0:
            last = k
    examined = 1.0  # P(the position below the last click is examined | clicks)
    for k in range(last + 1):
        in_b = posterior_mean(memory, states, ranking[k])
        add_observation(memory, 0, ranking[k], weight * clicks[k], weight)
        if clicks[k] == 1:
            silent_a, silent_b = 1.0 - after_a + after_a * silent[k + 1], 1.0 - after_b + after_b * silent[k + 1]
            information = weight * information_about_state(in_b, silent_a, silent_b)
            from_a, from_b = after_a, after_b
            if k == last:
                from_a, from_b = silent_a, silent_b
            evidence = in_b * from_b + (1.0 - in_b) * from_a
            share = in_b * from_b / evidence if evidence > 0.0 else in_b
            add_observation(memory, states, ranking[k], information * share, information)
            if k == last and evidence > 0.0:
                examined = (in_b * after_b + (1.0 - in_b) * after_a) * silent[k + 1] / evidence
    for k in range(last + 1, length):
        add_observation(memory, 0, ranking[k], 0.0, weight * examined)
        continues = after_none * silent[k + 1]
        total = 1.0 - after_none + continues
        examined *= continues / total if total > 0.0 else 0.0


@compiled
def put_uncertain_items_first(memory, attraction, left_out, available, order):
    """DBN: move items that are shown to learn about their satisfaction to the top; the last position says nothing about it.

    ``order`` (position,) holds indices into ``available``. ``left_out`` (item,) is what each item that is not shown would earn, -inf for
    those shown. An item is uncertain if attraction x mean satisfaction is less than an item left out earns by its means, or, as long as
    it has fewer than 4 log t trials, by ``left_out``. If all are uncertain, the one with most trials goes last. Otherwise an item could
    stay last for ever because little is known about it.
    """
    enough_trials = ENOUGH_TRIALS * math.log(current_time(memory))
    hoped, believed = left_out.max(), 0.0
    for i in range(len(available)):
        if left_out[i] > -np.inf:
            believed = max(believed, posterior_mean(memory, 0, available[i]) * posterior_mean(memory, 1, available[i]))
    before, length = order.copy(), len(order)
    is_uncertain = np.empty(length, np.bool_)
    most_trials = 0
    for position in range(length):
        item = available[before[position]]
        earned, trials = (
            attraction[before[position]] * posterior_mean(memory, 1, item),
            memory.statistics[1, item, TRIALS],
        )
        is_uncertain[position] = earned < believed or (earned < hoped and trials < enough_trials)
        if trials >= memory.statistics[1, available[before[most_trials]], TRIALS]:
            most_trials = position
    if is_uncertain.all():
        is_uncertain[most_trials] = False
    top, below = 0, is_uncertain.sum()
    for position in range(length):
        if is_uncertain[position]:
            order[top] = before[position]
            top += 1
        else:
            order[below] = before[position]
            below += 1


@compiled
def place_chain(memory, attraction, in_b, available, generator, ranking):
    """The items that earn most with these probabilities (item,), ordered by earned / (1 - passed), which is their best order.

    CCM: an item earns its attraction a, and the user passes it with probability (1 - a) settings[2] + a (settings[3] (1 - a) +
    settings[4] a). DBN: an item with satisfaction s earns a s and is passed with probability settings[2] (1 - a s).
    """
    has_satisfaction = len(memory.statistics) == 2
    earned, priorities = attraction.copy(), np.empty(len(available))
    for i in range(len(available)):
        if has_satisfaction:
            earned[i] = attraction[i] * in_b[i]
        passed = (1.0 - attraction[i]) * memory.settings[2]
        passed += attraction[i] * ((1.0 - in_b[i]) * memory.settings[3] + in_b[i] * memory.settings[4])
        # An item that every user passes would divide by 0.
        priorities[i] = earned[i] / max(1.0 - passed, 1e-12)
    chosen, order = np.empty_like(ranking), np.empty_like(ranking)
    place_largest(earned, np.arange(len(available)), generator, chosen)
    chosen_priorities = np.empty(len(ranking))
    for k in range(len(ranking)):
        chosen_priorities[k] = priorities[chosen[k]]
    place_largest(chosen_priorities, np.arange(len(ranking)), generator, order)
    for position in range(len(ranking)):
        ranking[position] = chosen[order[position]]
    if has_satisfaction and len(available) > len(ranking):
        put_uncertain_items_first(memory, attraction, earned, available, ranking)
    for position in range(len(ranking)):
        ranking[position] = available[ranking[position]]


@rank_step
def rank_chain_by_thompson_sampling(memory, available, generator, ranking):
    """The best list in one draw of all probabilities."""
    attraction, in_b = np.empty(len(available)), np.empty(len(available))
    for i in range(len(available)):
        attraction[i] = posterior_draw(memory, 0, available[i], generator)
        in_b[i] = attraction[i]
        if len(memory.statistics) == 2:
            in_b[i] = posterior_draw(memory, 1, available[i], generator)
    place_chain(memory, attraction, in_b, available, generator, ranking)


@compiled
def upper_bound_of_mean(memory, table, item, threshold):
    """KL-UCB of successes / trials; 1 without trials."""
    trials = memory.statistics[table, item, TRIALS]
    if trials <= 0.0:
        return 1.0
    mean = min(1.0, max(0.0, memory.statistics[table, item, SUCCESSES] / trials))
    return kl_ucb_index(mean, threshold / trials)


@rank_step
def rank_chain_by_kl_ucb(memory, available, generator, ranking):
    """The best list if all probabilities were at their upper confidence bounds."""
    time = current_time(memory)
    threshold = 0.0
    if time > 1.0:
        threshold = max(0.0, math.log(time) + memory.settings[5] * math.log(math.log(time)))
    attraction, in_b = np.empty(len(available)), np.empty(len(available))
    for i in range(len(available)):
        attraction[i] = upper_bound_of_mean(memory, 0, available[i], threshold)
        in_b[i] = attraction[i]
        if len(memory.statistics) == 2:
            in_b[i] = upper_bound_of_mean(memory, 1, available[i], threshold)
    place_chain(memory, attraction, in_b, available, generator, ranking)
