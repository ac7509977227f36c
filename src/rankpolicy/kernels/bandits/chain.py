"""Thompson sampling for users who walk down the list and may leave at any position: CCM and DBN.

After no click they go on with settings[2]. A click leaves them in one of two moods, the second with a probability of the item; they go on
with settings[3] from the first and settings[4] from the second. DBN: second = satisfied, which ends the session. CCM: second = relevant.
Statistics (table, item, 2): how often attracted, of how often examined; the last table: how often in the second mood, of how many clicks.
CCM has one table, as its second mood has the probability of attraction. Both columns are expectations given the clicks, under the means so
far. settings[0] and settings[1] are the Beta prior of all probabilities.
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
    """One E step over the list: who went on below the last click, and in which mood, is expected under the means before it."""
    after_none, after_first, after_second = memory.settings[2], memory.settings[3], memory.settings[4]
    length, moods = len(ranking), len(memory.statistics) - 1
    silent = np.ones(length + 1)  # P(no click from this position on | it is examined)
    last = -1
    for k in range(length - 1, -1, -1):
        going_on = 1.0 - after_none + after_none * silent[k + 1]
        silent[k] = (1.0 - posterior_mean(memory, 0, ranking[k])) * going_on
        if clicks[k] == 1 and last < 0:
            last = k
    examined = 1.0  # P(the position below the last click is examined | clicks)
    for k in range(last + 1):
        second = posterior_mean(memory, moods, ranking[k])
        add_observation(memory, 0, ranking[k], weight * clicks[k], weight)
        if clicks[k] == 1:
            from_first, from_second = after_first, after_second
            if k == last:
                from_first = 1.0 - after_first + after_first * silent[k + 1]
                from_second = 1.0 - after_second + after_second * silent[k + 1]
            evidence = second * from_second + (1.0 - second) * from_first
            share = second * from_second / evidence if evidence > 0.0 else second
            add_observation(memory, moods, ranking[k], weight * share, weight)
            if k == last and evidence > 0.0:
                examined = (second * after_second + (1.0 - second) * after_first) * silent[k + 1] / evidence
    for k in range(last + 1, length):
        add_observation(memory, 0, ranking[k], 0.0, weight * examined)
        going_on = after_none * silent[k + 1]
        total = 1.0 - after_none + going_on
        examined *= going_on / total if total > 0.0 else 0.0


@rank_step
def rank_chain_by_thompson_sampling(memory, available, generator, ranking):
    """In one draw of all probabilities: the items that earn most, by earned / (1 - passed), which is their best order.

    An item earns a and is passed with (1 - a) settings[2] + a (settings[3] (1 - a) + settings[4] a); with moods of their own (DBN) it earns
    a s and is passed with settings[2] (1 - a s).
    """
    earned, priorities = np.empty(len(available)), np.empty(len(available))
    for i in range(len(available)):
        attraction = posterior_draw(memory, 0, available[i], generator)
        if len(memory.statistics) == 2:
            second = posterior_draw(memory, 1, available[i], generator)
            earned[i] = attraction * second
        else:
            second = attraction
            earned[i] = attraction
        passed = (1.0 - attraction) * memory.settings[2]
        passed += attraction * ((1.0 - second) * memory.settings[3] + second * memory.settings[4])
        priorities[i] = earned[i] / max(1.0 - passed, 1e-12)
    chosen, places = np.empty_like(ranking), np.empty_like(ranking)
    place_largest(earned, np.arange(len(available)), generator, chosen)
    of_chosen = np.empty(len(ranking))
    for place in range(len(ranking)):
        of_chosen[place] = priorities[chosen[place]]
    place_largest(of_chosen, np.arange(len(ranking)), generator, places)
    for position in range(len(ranking)):
        ranking[position] = available[chosen[places[position]]]
