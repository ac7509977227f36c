import pytest
import torch

from rankpolicy import RankPolicyError
from rankpolicy.models import MLP, MODELS, Average, Linear, as_model
from rankpolicy.models.highway import HighwayLayer, HighwayNetwork
from rankpolicy.models.layers import ByteDropout

OF_SINGLE_ITEMS = [name for name in MODELS if getattr(MODELS[name](), "context", None) == "none"]


@pytest.mark.parametrize("name", OF_SINGLE_ITEMS)
def test_every_model_gives_one_score_an_item_from_that_item_alone(name):
    network = as_model(name).new_network_of(5).eval()
    features = torch.randn(7, 5, generator=torch.Generator().manual_seed(0))
    scores = network(features)
    assert scores.shape == (7,)
    torch.testing.assert_close(network(features[2:3]), scores[2:3])


def test_highway_layer_mixes_transform_and_carry():
    layer = HighwayLayer(1)
    with torch.no_grad():
        for linear, weight, bias in ((layer.transform, 2.0, 1.0), (layer.gate, 0.0, 0.0)):
            linear.weight.fill_(weight)
            linear.bias.fill_(bias)
    # H(3) = relu(2 * 3 + 1) = 7, T = sigmoid(0) = 0.5: 0.5 * 7 + 0.5 * 3
    assert layer(torch.tensor([[3.0]])).item() == pytest.approx(5.0)


@pytest.mark.parametrize("drops", [False, True])
def test_dropout_after_the_projection_of_a_highway_network(drops):
    """With gates closed and output weights of 1 the score is the sum of the projected values: 8 of 1, or some of 2 in training."""
    network = HighwayNetwork(3, hidden=(8,), dropout=0.5, drops_projection=drops)
    with torch.no_grad():
        for linear, weight, bias in (
            (network.projection, 0.0, 1.0),
            (network.layers[0].gate, 0.0, -1e4),
            (network.output, 1.0, 0.0),
        ):
            linear.weight.fill_(weight)
            linear.bias.fill_(bias)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        scores = network.train()(torch.zeros(1000, 3))
    if drops:
        assert {2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0} <= set(scores.tolist()) <= set(range(0, 18, 2))
        assert scores.mean().item() == pytest.approx(8.0, abs=4 * (8 / 1000) ** 0.5)
    else:
        assert set(scores.tolist()) == {8.0}
    assert set(network.eval()(torch.zeros(5, 3)).tolist()) == {8.0}


@pytest.mark.parametrize(("model", "bound"), [(Linear, 0.001), (MLP, 1 / 32)])
def test_initial_weights_are_drawn_from_the_range_of_the_paper(model, bound):
    """Uniform in (-0.001, 0.001) for linear models, in (-1/32, 1/32) for networks (Singh & Joachims 2019, appendix B.4)."""
    drawn, again, usual = (
        model(initial_range=value).new_network_of(700, generator=torch.Generator().manual_seed(0))
        for value in (bound, bound, None)
    )
    weights, same, others = (
        torch.cat([weight.detach().flatten() for weight in network.parameters()]) for network in (drawn, again, usual)
    )
    assert torch.equal(weights, same)
    assert 0.99 * bound < weights.abs().max() < bound
    assert weights.square().mean().item() == pytest.approx(bound**2 / 3, rel=0.1)
    assert others.abs().max() > bound
    with pytest.raises(RankPolicyError, match="initial_range must be above 0"):
        model(initial_range=0.0)


def test_a_new_highway_layer_carries_most_of_its_input():
    torch.manual_seed(0)
    assert torch.sigmoid(HighwayLayer(4).gate.bias).max() < 0.5


def test_average_is_the_mean_of_its_members():
    members = [as_model("linear").new_network_of(3) for _ in range(3)]
    features = torch.randn(4, 3)
    torch.testing.assert_close(Average(members)(features), sum(member(features) for member in members) / 3)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": "mpl"}, "Unknown model 'mpl'. Did you mean 'mlp'\\? Known: linear, mlp, highway"),
        ({"name": "mlp", "hidden": (8, 0)}, r"hidden must be at least 1; got \(8, 0\)"),
        ({"name": "highway", "hidden": (8, 9)}, "one or more widths, all equal"),
        ({"name": "mlp", "query_context": 3}, "query_context must be a string; got 3"),
        ({"name": "highway", "query_context": "max"}, "Unknown query_context 'max'. Known: none, mean"),
        ({"name": "mlp", "hidden": (8,), "dropout": 1.0}, "dropout must be at least 0 and below 1"),
    ],
)
def test_wrong_settings_are_named(settings, message):
    with pytest.raises(RankPolicyError, match=message):
        as_model(settings)


@pytest.mark.parametrize("rate", [0.0, 0.3, 0.9])
def test_dropout_zeroes_the_asked_share_and_keeps_the_mean(rate):
    num_activations = 100_000
    with torch.random.fork_rng():
        torch.manual_seed(0)
        dropped = ByteDropout(rate)(torch.ones(num_activations))
    standard_error = (rate * (1 - rate) / num_activations) ** 0.5
    assert abs((dropped == 0).double().mean().item() - rate) <= 4 * standard_error + 1 / 512
    assert dropped.mean().item() == pytest.approx(1.0, abs=4 * standard_error / (1 - rate) + 1e-6)
    assert ByteDropout(rate).eval()(torch.ones(3)).tolist() == [1, 1, 1]
