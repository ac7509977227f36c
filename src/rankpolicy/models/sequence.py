"""A recurrent network over token features of a pretrained language model."""

from __future__ import annotations

from torch import Tensor, nn

from rankpolicy.data.texts.text_pairs import Padded, TextPairs
from rankpolicy.models.dropout import ByteDropout
from rankpolicy.models.mlp import MLP
from rankpolicy.models.recurrent import joined_pair, masked_mean, run_lstm


class BiLSTM(nn.Module):
    """Two bidirectional LSTM layers, the mean over tokens, one tanh layer, one output (Gampa & Fujita 2019, section 5.2.2).

    Where the language model has read query and item together, the mean itself enters the tanh layer; where it has read them apart, their
    means are joined as [h_q; h_a; h_q * h_a; h_q - h_a].
    """

    def __init__(
        self,
        num_features: int,
        *,
        recurrent: int = 300,
        hidden: tuple[int, ...] = (256,),
        dropout: float = 0.0,
        reads_together: bool = False,
    ) -> None:
        super().__init__()
        self.reads_together = reads_together
        self.lstm = nn.LSTM(
            num_features, recurrent, num_layers=2, bidirectional=True, batch_first=True, dropout=dropout
        )
        self.dropout = ByteDropout(dropout)
        self.head = MLP(
            2 * recurrent * (1 if reads_together else 4), hidden=hidden, dropout=dropout, activation=nn.Tanh
        )

    def forward(self, pairs: TextPairs) -> Tensor:
        """pairs -> scores (pairs,)"""
        items = self._means(pairs.padded_items())
        if self.reads_together:
            return self.head(items)
        return self.head(joined_pair(self._means(pairs.padded_queries()), items))

    def _means(self, texts: Padded) -> Tensor:
        """A vector (pairs, 2 * recurrent) of one side of each pair; each distinct text is read once."""
        states = run_lstm(self.lstm, self.dropout(texts.tokens), texts.mask)
        return self.dropout(masked_mean(states, texts.mask))[texts.of_pair]
