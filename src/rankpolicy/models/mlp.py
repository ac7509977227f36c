"""Feed-forward network."""

from __future__ import annotations

from torch import Tensor, nn

from rankpolicy.models.dropout import ByteDropout


class MLP(nn.Module):
    """Layers of the widths ``hidden``, each linear -> activation -> dropout, then one linear output."""

    def __init__(
        self,
        num_features: int,
        *,
        hidden: tuple[int, ...] = (64, 64),
        dropout: float = 0.0,
        activation: type[nn.Module] = nn.ReLU,
    ) -> None:
        super().__init__()
        widths = (num_features, *hidden)
        layers: list[nn.Module] = []
        for width_in, width_out in zip(widths, hidden, strict=False):
            layers += [nn.Linear(width_in, width_out), activation(), ByteDropout(dropout)]
        self.hidden = nn.Sequential(*layers)
        self.output = nn.Linear(widths[-1], 1)

    def forward(self, features: Tensor) -> Tensor:
        """features (items, features) -> scores (items,)"""
        return self.output(self.hidden(features)).squeeze(-1)
