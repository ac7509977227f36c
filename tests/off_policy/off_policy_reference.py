"""Off-policy estimators as their definitions read, by loops over rounds, positions and all lists; and users to try them on."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np


def plackett_luce_lists(weights, num_positions):
    """{list: probability} of the first positions of a Plackett-Luce policy with these weights."""
    lists = {}
    for items in permutations(range(len(weights)), num_positions):
        probability, left = 1.0, sum(weights)
        for item in items:
            probability *= weights[item] / left
            left -= weights[item]
        lists[items] = probability
    return lists


def prefix_probability(lists, prefix):
    return sum(probability for items, probability in lists.items() if items[: len(prefix)] == prefix)


def marginal_probability(lists, item, position):
    return sum(probability for items, probability in lists.items() if items[position] == item)


def slow_estimate(name, rounds, target, behavior, position_weights, tails=None):
    """Value and standard error; rounds are (context, items, rewards), policies {list: probability} by context, tails Q[c][p][item]."""
    ratios, terms = [], []
    for context, items, rewards in rounds:
        new, old = target[context], behavior[context]
        num_positions = len(items)
        gains = [position_weights[p] * rewards[p] for p in range(num_positions)]
        if name.endswith("iips"):
            w = [
                marginal_probability(new, items[p], p) / marginal_probability(old, items[p], p)
                for p in range(num_positions)
            ]
        else:
            w = [
                prefix_probability(new, items[: p + 1]) / prefix_probability(old, items[: p + 1])
                for p in range(num_positions)
            ]
        if name in ("ips", "snips"):
            w, gains = w[-1:], [sum(gains)]
        if name == "cascade-dr":
            total = 0.0
            for p in range(num_positions):
                above = w[p - 1] if p else 1.0
                total += w[p] * (gains[p] - tails[context][p][items[p]])
                total += above * _expected_tail(new, items[:p], tails[context][p])
            w, gains = [1.0], [total]
        if name == "direct":
            w, gains = [1.0], [_expected_tail(new, (), tails[context][0])]
        ratios.append(w)
        terms.append([weight * gain for weight, gain in zip(w, gains, strict=True)])
    n, num_terms = len(rounds), len(terms[0])
    if not name.startswith("sn"):
        ratios = [[1.0] * num_terms] * n
    value, errors = 0.0, [0.0] * n
    for t in range(num_terms):
        mean_term, mean_ratio = sum(row[t] for row in terms) / n, sum(row[t] for row in ratios) / n
        value += mean_term / mean_ratio
        for r in range(n):
            errors[r] += (terms[r][t] - mean_term / mean_ratio * ratios[r][t]) / mean_ratio
    return value, math.sqrt(sum(error**2 for error in errors) / (n * (n - 1)))


def _expected_tail(lists, prefix, tail):
    reached = prefix_probability(lists, prefix)
    if reached == 0:
        return 0.0
    return sum(prefix_probability(lists, (*prefix, item)) / reached * tail[item] for item in range(len(tail)))


# Users: the mean reward (position,) of a list, and how much it may depend on.
def position_based(context, items):
    """Own item and position only."""
    attraction = [[0.1, 0.5, 0.8], [0.6, 0.3, 0.2]][context]
    return [attraction[item] * [1.0, 0.6][p] for p, item in enumerate(items)]


def cascade(context, items):
    """Items above too: the user goes on with 1 - attraction."""
    attraction = [[0.1, 0.5, 0.8], [0.6, 0.3, 0.2]][context]
    examined, rewards = 1.0, []
    for item in items:
        rewards.append(examined * attraction[item])
        examined *= 1 - attraction[item]
    return rewards


def whole_list(context, items):
    """Items below too."""
    attraction = [[0.1, 0.5, 0.8], [0.6, 0.3, 0.2]][context]
    return [attraction[item] * (1 - 0.5 * attraction[items[1 - p]]) for p, item in enumerate(items)]


def true_value(user, policy, position_weights):
    """Mean over equally likely contexts of the expected weighted reward, over all lists."""
    values = [
        sum(probability * np.dot(position_weights, user(context, items)) for items, probability in lists.items())
        for context, lists in enumerate(policy)
    ]
    return float(np.mean(values))
