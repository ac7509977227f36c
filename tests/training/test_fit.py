import math
from dataclasses import replace

import pytest
import torch

from rankpolicy import RankPolicyError, make_web_search
from rankpolicy.data.batches import RaggedTensors
from rankpolicy.metrics import parse_metric
from rankpolicy.models import MLP, Average, Linear
from rankpolicy.objectives import Hybrid, ListNetCrossEntropy, ObjectiveValue
from rankpolicy.training import TrainingSettings, Validation, fit_network

DATA = make_web_search(20, random_state=0)
TRAIN = RaggedTensors.of(DATA, DATA.features.copy(), torch.device("cpu"))


def new_network(dropout=0.2):
    generator = torch.Generator().manual_seed(0)
    model = MLP(hidden=(8,), dropout=dropout)
    return Average([model.new_network_of(DATA.num_features, generator=generator) for _ in range(2)])


def new_linear():
    return Linear().new_network_of(DATA.num_features)


def validation_that_gives(scores):
    """Validation scores told beforehand, an epoch each."""
    remaining = iter(scores)
    return Validation(TRAIN.features, lambda _: next(remaining), "told")


def weights_of(network):
    return torch.cat([parameter.detach().flatten() for parameter in network.parameters()])


def fit(network, objective=ListNetCrossEntropy(), **options):
    settings = TrainingSettings(**({"epochs": 4, "batch_queries": 6} | options.pop("settings", {})))
    generator = torch.Generator().manual_seed(settings.random_state)
    return fit_network(network, TRAIN, objective, settings=settings, generator=generator, **options)


def test_same_seed_same_weights_and_the_global_generator_is_left_alone():
    networks = [new_network(), new_network(), new_network()]
    before = torch.get_rng_state()
    for network, seed in zip(networks, (7, 7, 8), strict=True):
        fit(network, settings={"random_state": seed})
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(weights_of(networks[0]), weights_of(networks[1]))
    assert not torch.equal(weights_of(networks[0]), weights_of(networks[2]))


def test_every_query_is_seen_once_an_epoch():
    seen = torch.cat([batch.labels.sum(-1) for batch in TRAIN.shuffled_batches(6)])
    expected = [DATA[query].labels.sum() for query in range(DATA.num_queries)]
    assert sorted(seen.tolist()) == pytest.approx(sorted(expected))


def test_early_stopping_restores_the_best_epoch():
    network, other = new_network(), new_network()
    state = fit(
        network, settings={"epochs": 50, "patience": 3}, validation=validation_that_gives([1, 3, 2, 2, 3, 9, 9])
    )
    assert (state.best_epoch, state.best_score, state.epoch) == (2, 3, 5)
    fit(other, settings={"epochs": 2})
    assert torch.equal(weights_of(network), weights_of(other))
    assert not network.training


def test_without_validation_all_epochs_run():
    state = fit(new_network())
    assert state.epoch == 4
    assert state.reports[-1] < state.reports[0]


def test_resume_goes_on_as_if_never_stopped(tmp_path):
    checkpoint = tmp_path / "run" / "network.ckpt"
    whole, stopped, resumed = new_network(), new_network(), new_network()
    expected = fit(whole, settings={"epochs": 6}, validation=validation_that_gives([1, 2, 4, 3, 5, 4]))
    fit(stopped, settings={"epochs": 3}, validation=validation_that_gives([1, 2, 4]), checkpoint=checkpoint)
    state = fit(
        resumed,
        settings={"epochs": 6},
        validation=validation_that_gives([3, 5, 4]),
        checkpoint=checkpoint,
        resume=True,
    )
    assert torch.equal(weights_of(whole), weights_of(resumed))
    assert (state.reports, state.scores) == (expected.reports, expected.scores)
    assert (state.best_epoch, state.best_score) == (5, 5)
    assert [path.name for path in checkpoint.parent.iterdir()] == ["network.ckpt"]


def test_a_foreign_checkpoint_is_refused(tmp_path):
    checkpoint = tmp_path / "c"
    fit(new_network(), checkpoint=checkpoint)
    other = new_linear()
    with pytest.raises(RankPolicyError, match="not a checkpoint of this training"):
        fit(other, checkpoint=checkpoint, resume=True)
    checkpoint.write_bytes(b"half a file")
    with pytest.raises(RankPolicyError, match="cannot resume from"):
        fit(new_network(), checkpoint=checkpoint, resume=True)


@pytest.mark.parametrize("change", [{"random_state": 1}, {"learning_rate": 0.5}, {"weight_decay": 0.5}])
def test_a_checkpoint_of_other_settings_is_refused(tmp_path, change):
    fit(new_network(), checkpoint=tmp_path / "c")
    with pytest.raises(RankPolicyError, match=f"{next(iter(change))}="):
        fit(new_network(), settings=change, checkpoint=tmp_path / "c", resume=True)


def test_a_checkpoint_of_another_mix_of_losses_is_refused(tmp_path):
    objective = Hybrid(reward=parse_metric("ap"), gamma=0.5, num_samples=2)
    fit(new_network(), objective, checkpoint=tmp_path / "c")
    fit(new_network(), objective, checkpoint=tmp_path / "c", resume=True)
    with pytest.raises(RankPolicyError, match=r"gamma=0\.75"):
        fit(new_network(), replace(objective, gamma=0.75), checkpoint=tmp_path / "c", resume=True)


def test_a_loss_that_is_not_finite_stops_training_with_advice():
    class Diverging:
        report_name = "loss"

        def __call__(self, scores, batch, *, generator=None):
            return ObjectiveValue(scores.sum() * math.inf, torch.tensor(math.inf))

    with pytest.raises(RankPolicyError, match=r"epoch 1: the loss is not finite.*Lower learning_rate"):
        fit_network(new_network(), TRAIN, Diverging(), settings=TrainingSettings(), generator=torch.Generator())


def test_averaged_networks_learn_as_they_would_alone():

    alone = new_linear()
    twice = Average([new_linear() for _ in range(2)])
    for member in twice.members:
        member.load_state_dict(alone.state_dict())
    fit(alone)
    fit(twice)
    for member in twice.members:
        # Rankings do not depend on the bias of the output: its gradient is rounding noise.
        torch.testing.assert_close(member.output.weight, alone.output.weight)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"optimizer": "adan"}, "TrainingSettings has no setting 'optimizer'"),
        ({"epochs": 0}, "epochs must be at least 1; got 0"),
        ({"batch_queries": -1}, "batch_queries must be at least 1"),
        ({"patience": 0}, "patience must be at least 1 or None; got 0"),
        ({"learning_rate": 0.0}, "learning_rate must be above 0"),
    ],
)
def test_wrong_settings_are_named(settings, message):
    with pytest.raises(RankPolicyError, match=message):
        TrainingSettings(**settings)
