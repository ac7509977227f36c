"""The kernel gives what data/scaling.py specifies, to the last bit."""

import numpy as np
import pytest

from rankpolicy.data import from_arrays
from rankpolicy.data.scaling import fit_scaling, with_quantiles
from rankpolicy.kernels.quantiles import quantile_table, scaled_with_quantiles


@pytest.mark.parametrize("num_knots", [2, 5, 16, 17, 255, 257])
@pytest.mark.parametrize("threads_from", [0, 10**12])
def test_scaled_features_are_those_of_the_specification(num_knots, threads_from, monkeypatch):
    monkeypatch.setattr("rankpolicy.kernels.compile._ENOUGH_NANOSECONDS", threads_from)
    rng = np.random.default_rng(num_knots)
    data = rng.standard_normal((500, 6)).astype(np.float32)
    data[:, 1] = np.round(data[:, 1])  # few values
    data[:, 2] = np.maximum(data[:, 2], 0)  # half of them 0
    data[:, 3] = 7  # constant
    data[:, 4] *= 1e30
    knots = np.quantile(data, np.linspace(0, 1, num_knots), axis=0, method="nearest").T.astype(np.float32)
    new = np.concatenate([data[:70], 3 * data[70:80], np.zeros((1, 6), np.float32)])
    center, spread = rng.random(12, dtype=np.float32), rng.random(12, dtype=np.float32)
    spread[3] = np.inf
    expected = with_quantiles(new, knots)
    scaled = scaled_with_quantiles(new, quantile_table(np.ascontiguousarray(knots)), center, spread)
    np.testing.assert_array_equal(scaled, (expected - center) / spread)


def test_a_fitted_scaling_uses_it():
    rng = np.random.default_rng(0)
    train = from_arrays(rng.standard_normal((300, 4)), group=[300])
    scaling = fit_scaling("quantile", train)
    expected = (with_quantiles(train.features, scaling.knots) - scaling.center) / scaling.spread
    np.testing.assert_array_equal(scaling.apply(train.features), expected)
