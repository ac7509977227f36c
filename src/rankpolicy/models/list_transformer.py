"""Self-attention over the items of a query: the score of an item depends on the items it is ranked with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rankpolicy.data.padding import Padding
from rankpolicy.data.rows import QueryRows
from rankpolicy.declarations.settings import frozen_settings, setting
from rankpolicy.models import layers
from rankpolicy.models.layers import ByteDropout
from rankpolicy.models.model import FeatureModel, dropout_rate
from rankpolicy.types import RankPolicyError

_FEW_ITEMS = 16  # queries of up to so many items are padded together


@dataclass(frozen=True, slots=True, eq=False)
class SimilarQueries:
    """Queries that are padded to one length: their items follow one another in the arrays that attention reads."""

    num_items: int  # number of their items
    shape: tuple[int, int]  # shape (query, item) of the padded array
    padding: Padding | None  # how flat items and padded cells correspond; None where all queries have the same length

    @classmethod
    def of(cls, sizes: NDArray[np.int64], device: torch.device) -> SimilarQueries:
        """Queries of these numbers of items (queries,)."""
        shape = (len(sizes), int(sizes.max()))
        padding = None if (sizes == sizes[0]).all() else Padding.of_sizes(sizes).to(device)
        return cls(int(sizes.sum()), shape, padding)

    def padded(self, flat: Tensor) -> Tensor:
        """(items, width) -> (query, item, width), 0 in the padding."""
        if self.padding is None:
            return flat.view(*self.shape, -1)
        cells = flat.new_zeros(self.shape[0] * self.shape[1], flat.shape[1])
        return cells.index_copy(0, self.padding.cells, flat).view(*self.shape, -1)

    def flat(self, padded: Tensor) -> Tensor:
        """(query, item, width) -> (items, width)"""
        rows = padded.reshape(-1, padded.shape[-1])
        return rows if self.padding is None else rows[self.padding.cells]


def grouped_by_length(sizes: NDArray[np.int64], device: torch.device) -> tuple[Tensor | None, list[SimilarQueries]]:
    """Group queries by the power of two that bounds their length, so that at most half of a padded array is padding.

    Returns the items in the order of the groups (None: the given order) and the groups. Queries of up to 16 items are one group.

    >>> order, groups = grouped_by_length(np.array([2, 40, 3]), torch.device("cpu"))
    >>> order[:6].tolist(), [group.shape for group in groups]
    ([0, 1, 42, 43, 44, 2], [(2, 3), (1, 40)])
    """
    kinds = np.ceil(np.log2(np.maximum(sizes, _FEW_ITEMS))).astype(np.int64)
    if (kinds == kinds[0]).all():
        return None, [SimilarQueries.of(sizes, device)]
    groups = [SimilarQueries.of(sizes[kinds == kind], device) for kind in np.unique(kinds)]
    order = np.argsort(np.repeat(kinds, sizes), kind="stable")
    return torch.from_numpy(order).to(device), groups


class AttentionBlock(nn.Module):
    """x + attention(norm(x)), then x + feed-forward(norm(x)); the feed-forward layer is relu, twice as wide.

    Attention (Vaswani et al. 2017) is softmax(q kᵀ / sqrt(width / heads)) v over the items of the same query, in each head, and one
    linear layer over the heads. There is no encoding of positions, so that the order of the items has no effect.
    """

    def __init__(self, width: int, num_heads: int, *, dropout: float, generator: torch.Generator | None) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.attention_norm = nn.LayerNorm(width)
        self.query_key_value = layers.linear(width, 3 * width, generator=generator)
        self.heads_output = layers.linear(width, width, generator=generator)
        self.norm = nn.LayerNorm(width)
        self.wide = layers.linear(width, 2 * width, generator=generator)
        self.narrow = layers.linear(2 * width, width, generator=generator)
        self.dropout = ByteDropout(dropout)

    def forward(self, items: Tensor, groups: list[SimilarQueries]) -> Tensor:
        """items (items, width) in the order of the groups -> (items, width)"""
        projected = self.query_key_value(self.attention_norm(items))
        by_group = projected.split([group.num_items for group in groups])
        attended = torch.cat([self._attend(rows, group) for rows, group in zip(by_group, groups, strict=True)])
        items = items + self.dropout(self.heads_output(attended))
        changed: Tensor = items + self.dropout(self.narrow(self.dropout(torch.relu(self.wide(self.norm(items))))))
        return changed

    def _attend(self, projected: Tensor, group: SimilarQueries) -> Tensor:
        """(items, 3 * width) -> (items, width)"""
        num_queries, longest = group.shape
        width = projected.shape[1] // 3
        heads = group.padded(projected).view(num_queries, longest, 3, self.num_heads, width // self.num_heads)
        query, key, value = heads.permute(2, 0, 3, 1, 4)  # each (query, head, item, width of a head)
        mask = None if group.padding is None else group.padding.mask[:, None, None]
        attended = nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        return group.flat(attended.transpose(1, 2).reshape(num_queries, longest, width))


class ListTransformerNetwork(nn.Module):
    """A projection of the features, attention blocks, and one linear output."""

    def __init__(
        self,
        num_features: int,
        *,
        width: int = 64,
        num_heads: int = 2,
        num_blocks: int = 2,
        dropout: float = 0.0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.projection = layers.linear(num_features, width, generator=generator)
        self.blocks = nn.ModuleList(
            AttentionBlock(width, num_heads, dropout=dropout, generator=generator) for _ in range(num_blocks)
        )
        self.norm = nn.LayerNorm(width)
        self.output = layers.linear(width, 1, generator=generator)

    def forward(self, rows: QueryRows) -> Tensor:
        """The features of whole queries (items, features) -> scores (items,)"""
        order, groups = grouped_by_length(rows.sizes(), rows.device)
        items = self.projection(rows.features)
        if order is not None:
            items = items[order]
        for block in self.blocks:
            items = block(items, groups)
        scores: Tensor = self.output(self.norm(items)).squeeze(-1)
        return scores if order is None else torch.empty_like(scores).index_copy(0, order, scores)


@final
@frozen_settings
class ListTransformer(FeatureModel):
    """A transformer over the items of a query: an item's score depends on the items it is ranked with, not on their order.

    Features are projected to ``width``; each block lets every item attend to all items of its query and applies a feed-forward layer
    (Pobrotyn et al. 2020; Qin et al. 2021); the output is linear. Time and memory of attention grow with the square of the number of
    items of a query. Which rows belong to one query must be known to predict.
    """

    name: ClassVar[str] = "list-transformer"

    width: int = setting(64, "Width of the vector of an item; a multiple of num_heads.", at_least=1)
    num_heads: int = setting(
        2, "How many attention heads a block has: that many ways of looking at the other items.", at_least=1
    )
    num_blocks: int = setting(
        2, "How many attention blocks follow one another; 1 or 2 for little data.", at_least=1, at_most=100
    )
    dropout: float = dropout_rate(0.2)

    @property
    def context(self) -> Literal["items"]:
        """What the network reads of the other items of a query: all."""
        return "items"

    def _check_together(self) -> None:
        if self.width % self.num_heads:
            raise RankPolicyError(
                f"width must be a multiple of num_heads, as every head has an equal share of it; got {self.width} and {self.num_heads}."
            )

    def new_network_of(self, num_features: int, *, generator: torch.Generator | None = None) -> ListTransformerNetwork:
        return ListTransformerNetwork(
            num_features,
            width=self.width,
            num_heads=self.num_heads,
            num_blocks=self.num_blocks,
            dropout=self.dropout,
            generator=generator,
        )
