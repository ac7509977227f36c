import torch

from rankpolicy.data.texts.text_pairs import TextPairs, TokenTable
from rankpolicy.models.bilstm import BiLSTMNetwork
from rankpolicy.models.layers import masked_max, masked_mean, run_lstm


def table(lengths, seed):
    tokens = torch.randn(sum(lengths), 3, generator=torch.Generator().manual_seed(seed))
    return TokenTable.end_to_end(tokens, lengths)


def pairs():
    return TextPairs(table([2, 3], 0), table([4, 1, 6], 1), torch.tensor([0, 0, 1, 1]), torch.tensor([0, 1, 2, 0]))


def network(**settings):
    torch.manual_seed(0)
    return BiLSTMNetwork(3, recurrent=4, hidden=(5,), **settings).eval()


def test_a_pair_scores_the_same_alone_and_among_longer_ones():
    model = network()
    alone = torch.cat([model(pairs()[row : row + 1]) for row in range(4)])
    torch.testing.assert_close(model(pairs()), alone)


def test_scores_are_those_of_the_formula():
    model, given = network(), pairs()

    def mean_of(table, text):
        start, length = int(table.starts[text]), int(table.lengths[text])
        return model.upper(model.lower(table.tokens[start : start + length][None])[0])[0][0].mean(0)

    for row, (query, item) in enumerate(((0, 0), (0, 1), (1, 2), (1, 0))):
        q, a = mean_of(given.queries, query), mean_of(given.items, item)
        hidden = torch.tanh(model.head.hidden[0](torch.cat([q, a, q * a, q - a])))
        torch.testing.assert_close(model(given)[row], model.head.output(hidden)[0])


def test_texts_read_together_need_no_joining():
    model = network(reads_together=True)
    read = table([4, 1, 6], 1)
    given = TextPairs(None, read, torch.tensor([0, 0, 1]), torch.arange(3))
    expected = torch.stack(
        [model.upper(model.lower(part[None])[0])[0][0].mean(0) for part in read.tokens.split([4, 1, 6])]
    )
    torch.testing.assert_close(model(given), model.head(expected))


def test_every_weight_learns():
    model = network().train()
    model(pairs()).sum().backward()
    assert all(weight.grad.abs().sum() > 0 for weight in model.parameters())


def test_half_precision_tokens_are_read_in_single_precision():
    read = table([2, 1], 0)
    tokens, mask = TokenTable(read.tokens.half(), read.starts, read.lengths).padded(torch.tensor([0, 1]))
    assert tokens.dtype == torch.float32
    assert tokens[1, 1].tolist() == [0, 0, 0]
    assert mask.tolist() == [[True, True], [True, False]]


def test_pooling_and_recurrence_leave_padding_out():
    tokens = torch.tensor([[[1.0], [-3.0], [7.0]], [[-2.0], [9.0], [9.0]]])
    mask = torch.tensor([[True, True, False], [True, False, False]])
    assert masked_mean(tokens, mask).tolist() == [[-1.0], [-2.0]]
    assert masked_max(tokens, mask).tolist() == [[1.0], [-2.0]]
    lstm = torch.nn.LSTM(1, 2, batch_first=True, bidirectional=True)
    torch.testing.assert_close(run_lstm(lstm, tokens, mask)[1, :1], lstm(tokens[1:, :1])[0][0])


def test_blocks_cover_all_pairs_in_order():
    blocks = list(pairs().blocks(3))
    assert [len(block) for block in blocks] == [3, 1]
    assert torch.cat([block.item_of_pair for block in blocks]).tolist() == [0, 1, 2, 0]
