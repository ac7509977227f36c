"""Thompson sampling for users who walk down the list and may leave at any position: CCM and DBN.

After no click the user continues with probability settings[2]. After a click the user is in state A, or with an item-specific
probability in state B, and continues with probability settings[3] from A and settings[4] from B. DBN: B means satisfied, and the
session ends. CCM: B means that the item was relevant. Statistics (table, item, 2): successes and trials, both expectations given the
clicks under the means so far. Table 0 counts attracted of examined, the last table counts state B of clicked. CCM has one table,
because its probability of state B is the attraction. settings[0] and settings[1] are the Beta prior of all probabilities.
"""

import numpy as np

from rankpolicy.kernels.bandits.index import place_largest
from rankpolicy.kernels.bandits.step import compiled, learn_step, rank_step

SUCCESSES, TRIALS = 0, 1


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


@learn_step
def learn_chain(memory, ranking, clicks, weight):
    """One E step over the list: how far the user went below the last click, and in which state, expected under the means so far."""
    after_none, after_a, after_b = memory.settings[2], memory.settings[3], memory.settings[4]
    length, states = len(ranking), len(memory.statistics) - 1
    silent = np.ones(length + 1)  # P(no click from this position on | it is examined)
    last = -1
    for k in range(length - 1, -1, -1):
        going_on = 1.0 - after_none + after_none * silent[k + 1]
        silent[k] = (1.0 - posterior_mean(memory, 0, ranking[k])) * going_on
        if clicks[k] == 1 and last < 0:
            last = k
    examined = 1.0  # P(the position below the last click is examined | clicks)
    for k in range(last + 1):
        in_b = posterior_mean(memory, states, ranking[k])
        add_observation(memory, 0, ranking[k], weight * clicks[k], weight)
        if clicks[k] == 1:
            from_a, from_b = after_a, after_b
            if k == last:
                from_a = 1.0 - after_a + after_a * silent[k + 1]
                from_b = 1.0 - after_b + after_b * silent[k + 1]
            evidence = in_b * from_b + (1.0 - in_b) * from_a
            share = in_b * from_b / evidence if evidence > 0.0 else in_b
            add_observation(memory, states, ranking[k], weight * share, weight)
            if k == last and evidence > 0.0:
                examined = (in_b * after_b + (1.0 - in_b) * after_a) * silent[k + 1] / evidence
    for k in range(last + 1, length):
        add_observation(memory, 0, ranking[k], 0.0, weight * examined)
        going_on = after_none * silent[k + 1]
        total = 1.0 - after_none + going_on
        examined *= going_on / total if total > 0.0 else 0.0


@rank_step
def rank_chain_by_thompson_sampling(memory, available, generator, ranking):
    """In one draw of all probabilities: the items that earn most, ordered by earned / (1 - passed), which is their best order.

    CCM: an item earns its attraction a, and the user passes it with probability (1 - a) settings[2] + a (settings[3] (1 - a) +
    settings[4] a). DBN: an item with satisfaction s earns a s and is passed with probability settings[2] (1 - a s).
    """
    earned, priorities = np.empty(len(available)), np.empty(len(available))
    for i in range(len(available)):
        attraction = posterior_draw(memory, 0, available[i], generator)
        if len(memory.statistics) == 2:
            in_b = posterior_draw(memory, 1, available[i], generator)
            earned[i] = attraction * in_b
        else:
            in_b = attraction
            earned[i] = attraction
        passed = (1.0 - attraction) * memory.settings[2]
        passed += attraction * ((1.0 - in_b) * memory.settings[3] + in_b * memory.settings[4])
        priorities[i] = earned[i] / max(1.0 - passed, 1e-12)
    chosen, places = np.empty_like(ranking), np.empty_like(ranking)
    place_largest(earned, np.arange(len(available)), generator, chosen)
    of_chosen = np.empty(len(ranking))
    for place in range(len(ranking)):
        of_chosen[place] = priorities[chosen[place]]
    place_largest(of_chosen, np.arange(len(ranking)), generator, places)
    for position in range(len(ranking)):
        ranking[position] = available[chosen[places[position]]]
