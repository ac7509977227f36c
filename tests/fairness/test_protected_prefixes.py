"""FA*IR by hand and by enumeration of all coin tosses."""

from itertools import product

import numpy as np
import pytest

from rankpolicy.fairness import corrected_alpha, minimum_protected, rejection_probability
from rankpolicy.fairness.protected_prefixes import with_protected_prefixes


@pytest.mark.parametrize(
    ("proportion", "expected"),
    # Table 2 of Zehlike et al. (2017), alpha = 0.1, positions 1 to 12.
    [
        (0.1, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        (0.3, [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2]),
        (0.5, [0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 3, 4]),
        (0.7, [0, 1, 1, 2, 2, 3, 3, 4, 5, 5, 6, 6]),
    ],
)
def test_the_published_numbers_of_protected_items(proportion, expected):
    assert minimum_protected(12, proportion=proportion, alpha=0.1).tolist() == expected


@pytest.mark.parametrize("proportion", [0.2, 0.5, 0.7])
@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.3])
def test_rejections_of_fair_lists_by_enumeration(proportion, alpha):
    def rejected(minima):
        total = 0.0
        for tosses in product((0, 1), repeat=8):
            if (np.cumsum(tosses) < minima).any():
                total += proportion ** sum(tosses) * (1 - proportion) ** (8 - sum(tosses))
        return total

    minima = minimum_protected(8, proportion=proportion, alpha=alpha)
    assert rejection_probability(minima, proportion=proportion) == pytest.approx(rejected(minima))
    corrected = corrected_alpha(8, proportion=proportion, alpha=alpha)
    assert rejected(minimum_protected(8, proportion=proportion, alpha=corrected)) <= alpha
    # It is the highest: a little more of it, and fair lists are rejected too often, unless nothing was to be corrected.
    higher = minimum_protected(8, proportion=proportion, alpha=min(alpha, corrected + 1e-6))
    assert rejected(higher) > alpha or corrected == pytest.approx(alpha)


def test_the_best_ranking_with_enough_protected_items_by_enumeration():
    """Of all rankings that meet the minima and order each group by score, the one that is first in the order of scores."""
    from itertools import permutations

    generator = np.random.default_rng(0)
    for _ in range(30):
        scores, is_protected = generator.normal(size=5), generator.random(5) < 0.4
        minima = minimum_protected(5, proportion=0.6, alpha=0.2)
        feasible = [
            ranking
            for ranking in permutations(range(5))
            if (np.cumsum(is_protected[list(ranking)]) >= np.minimum(minima, is_protected.sum())).all()
        ]
        best = max(feasible, key=lambda ranking: tuple(scores[list(ranking)]))
        assert with_protected_prefixes(scores, is_protected, minima).tolist() == list(best)
