"""Harvesting on a public log, which is not part of the project: RANKPOLICY_DATA says where it is."""

import os
from pathlib import Path

import numpy as np
import pytest

from rankpolicy.clicks import estimate_position_bias, read_click_log

DATA = Path(os.environ.get("RANKPOLICY_DATA", "nowhere"))

pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason="RANKPOLICY_DATA does not name the folder of the public datasets"
)


def test_yandex_counts_by_all_pairs():
    """Click-through falls with relevance and examination, propensities with examination alone: they fall too, but less."""
    log = read_click_log(DATA / "yandex_60_counts" / "query_url_position_counts.csv.gz")
    found = estimate_position_bias(log, method="all-pairs", num_resamples=40)
    assert (found.num_swap_pairs, found.resampled) == (1259, "queries")
    assert found.is_identified.all()
    assert (np.diff(found.propensities) < 0).all()
    assert (found.propensities[1:] > 3 * (found.click_through / found.click_through[0])[1:]).all()
    by_impression = estimate_position_bias(log, method="all-pairs", resample="sessions", num_resamples=40)
    width, narrow = (np.diff(bias.intervals[1:])[:, 0] for bias in (found, by_impression))
    assert (width > narrow).all()
