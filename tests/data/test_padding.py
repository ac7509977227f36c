"""Padding queries of similar length together costs no more than a multiple of their items."""

import numpy as np
import pytest
import torch

from rankpolicy.data.padding import Padding, queries_by_length


@pytest.mark.parametrize("most_cells", [None, 100, 10_000])
def test_every_query_is_in_one_group_and_padding_is_bounded(most_cells):
    sizes = np.random.default_rng(0).integers(1, 3000, 500)
    groups = queries_by_length(sizes, most_cells=most_cells)
    assert sorted(np.concatenate(groups).tolist()) == list(range(500))
    for group in groups:
        assert Padding.of_sizes(sizes[group]).mask.size <= max(2 * sizes[group].sum(), 16 * len(group))
        if most_cells is not None and len(group) > 1:
            assert Padding.of_sizes(sizes[group]).mask.size <= most_cells


@pytest.mark.parametrize("dtype", [np.float32, np.int64, bool])
@pytest.mark.parametrize("shape", [(6,), (2, 6)])
def test_arrays_and_tensors_are_padded_alike_and_come_back(dtype, shape):
    padding, flat = Padding.of_sizes(np.array([2, 1, 0, 3])), np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    expected = np.zeros((*shape[:-1], 4, 3), dtype)
    expected[..., padding.mask] = flat
    padded = padding.pad(flat)
    assert padded.dtype == dtype
    np.testing.assert_array_equal(padded, expected.reshape(-1, 3))
    for of_tensors in (padding, padding.to("cpu")):
        of_tensor = of_tensors.pad(torch.from_numpy(flat))
        assert isinstance(of_tensor, torch.Tensor)
        np.testing.assert_array_equal(of_tensor.numpy(), padded)
    if len(shape) == 1:
        np.testing.assert_array_equal(padding.unpad(padded), flat)
        assert torch.equal(padding.unpad(torch.from_numpy(padded)), torch.from_numpy(flat))
