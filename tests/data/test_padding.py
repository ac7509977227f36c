"""Padding queries of similar length together costs no more than a multiple of their items."""

import numpy as np
import pytest

from rankpolicy.data.padding import Padding, queries_by_length


@pytest.mark.parametrize("most_cells", [None, 100, 10_000])
def test_every_query_is_in_one_group_and_padding_is_bounded(most_cells):
    sizes = np.random.default_rng(0).integers(1, 3000, 500)
    groups = queries_by_length(sizes, most_cells=most_cells)
    assert sorted(np.concatenate(groups).tolist()) == list(range(500))
    for group in groups:
        assert Padding.of_sizes(sizes[group]).mask.numel() <= max(2 * sizes[group].sum(), 16 * len(group))
        if most_cells is not None and len(group) > 1:
            assert Padding.of_sizes(sizes[group]).mask.numel() <= most_cells
