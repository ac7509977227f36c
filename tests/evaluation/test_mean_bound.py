"""The bound of a mean, by exact enumeration of what can be observed."""

import math

import numpy as np
import pytest
from scipy.stats import binom

import rankpolicy as rp
from rankpolicy.evaluation.mean_bound import upper_mean


@pytest.mark.parametrize("level", [0.8, 0.95])
@pytest.mark.parametrize("num_values", [1, 7, 60])
def test_the_mean_of_zeros_and_ones_is_below_it_as_often_as_stated(num_values, level):
    """All counts of ones are enumerated, so the probability is exact."""
    counts = np.arange(num_values + 1)
    bounds = np.array([upper_mean(np.arange(num_values) < ones, highest=1.0, level=level) for ones in counts])
    assert (np.diff(bounds) >= 0).all()
    for mean in (0.003, 0.05, 0.3, 0.8, 0.99):
        assert binom.pmf(counts, num_values, mean)[bounds >= mean].sum() >= level


def test_it_is_short_where_numbers_vary_little():
    """Within a factor of two of the length for a known variance; Hoeffding's bound is four times longer."""
    values = np.random.default_rng(0).choice([0.0, 0.1], 2000, p=[0.9, 0.1])
    length = upper_mean(values, highest=1.0) - values.mean()
    of_known_variance = math.sqrt(2 * values.var() * math.log(20) / 2000)
    assert of_known_variance < length < 2 * of_known_variance
    assert math.sqrt(math.log(20) / (2 * 2000)) > 4 * length


def test_units_do_not_matter_and_numbers_above_the_highest_count_as_it():
    values = np.random.default_rng(0).exponential(0.1, 100).clip(max=1.0)
    assert upper_mean(7 * values, highest=7.0) == pytest.approx(7 * upper_mean(values, highest=1.0))
    assert upper_mean(np.append(values, 3.0), highest=1.0) == upper_mean(np.append(values, 1.0), highest=1.0)
    assert upper_mean([1.0], highest=1.0) == 1.0


@pytest.mark.parametrize(
    ("values", "settings", "message"),
    [
        ([], {}, "one or more numbers"),
        ([-1.0], {}, "0 or more"),
        ([[1.0]], {}, "in one dimension"),
        ([1.0], {"highest": 0.0}, "highest must be above 0"),
        ([1.0], {"level": 1.0}, "level between 0 and 1"),
    ],
)
def test_what_cannot_be_asked(values, settings, message):
    with pytest.raises(rp.RankPolicyError, match=message):
        upper_mean(values, **{"highest": 1.0} | settings)
