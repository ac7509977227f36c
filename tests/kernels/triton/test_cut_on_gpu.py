"""Queries of a step, cut out of a bucket."""

import pytest
import torch

from rankpolicy.kernels.triton.cut import cut_queries


@pytest.mark.parametrize("has_more", [False, True])
@pytest.mark.parametrize("step", [0, 2, 3])
def test_each_member_gets_the_queries_of_its_group(device, has_more, step):
    generator = torch.Generator().manual_seed(0)
    num_queries, num_items, size, members = 11, 37, 3, 2
    labels = torch.rand(num_queries, num_items, generator=generator)
    mask = torch.rand(num_queries, num_items, generator=generator) < 0.7
    rows = torch.randint(1000, (num_queries, num_items), generator=generator)
    order = torch.stack([torch.randperm(num_queries, generator=generator) for _ in range(2)])
    more = {}
    if has_more:
        more = {
            "values": [labels + 1, labels + 2],
            "groups": torch.randint(3, (num_queries, num_items), generator=generator),
            "query_weights": torch.rand(num_queries, generator=generator),
        }
    arrays = {"rows": rows, "labels": labels, "mask": mask, **more}
    given = {
        name: [own.to(device) for own in array] if isinstance(array, list) else array.to(device)
        for name, array in arrays.items()
    }
    cut = cut_queries(order.to(device), torch.tensor([step], device=device), num_queries=size, members=members, **given)
    start = min(step * size, num_queries - size)
    chosen = order[:, start : start + size]
    of_members = chosen[:, None].expand(-1, members, -1).reshape(-1)
    assert torch.equal(cut.rows.cpu(), rows[chosen].view(2, -1))
    assert torch.equal(cut.labels.cpu(), labels[of_members])
    assert torch.equal(cut.mask.cpu(), mask[of_members])
    if has_more:
        for own, values in zip(cut.values, more["values"], strict=True):
            assert torch.equal(own.cpu(), values[of_members])
        assert torch.equal(cut.groups.cpu(), more["groups"][of_members])
        assert torch.equal(cut.query_weights.cpu(), more["query_weights"][of_members])
