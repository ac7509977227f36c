"""What every objective promises: finite losses and gradients, padding and batch invariance, settings that are read."""

import inspect

import numpy as np
import pytest
import torch

import rankpolicy as rp
from rankpolicy import objectives
from rankpolicy.data.batches import Batch, RaggedTensors
from rankpolicy.data.padding import Padding
from rankpolicy.declarations.setting_texts import describe_settings
from rankpolicy.declarations.values import SettingsValue

OBJECTIVES = {
    "DELTRLoss": {"protected": 1},
    "FairPolicyGradient": {"reward": "ndcg", "num_groups": 2},
    "Hybrid": {"reward": "ap", "num_samples": 4},
    "ListNetCrossEntropy": {},
    "PolicyGradient": {"reward": "ndcg@5"},
    "SigmoidCrossEntropy": {},
    "SoftmaxCrossEntropy": {},
    "SquaredError": {},
}
SAMPLING = {
    "FairPolicyGradient": {"reward": "ndcg", "num_groups": 2, "estimator": "reinforce", "num_samples": 4},
    "Hybrid": OBJECTIVES["Hybrid"],
    "PolicyGradient": {"reward": "ndcg@5", "estimator": "reinforce", "num_samples": 4},
}
ALL = pytest.mark.parametrize("name", OBJECTIVES)


def new_objective(name, **settings):
    return getattr(objectives, name)(**OBJECTIVES[name] | settings)


def batch_of(sizes, labels):
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    data = rp.from_arrays(np.zeros((offsets[-1], 1)), labels, group=sizes, protected=np.arange(offsets[-1]) % 2)
    return RaggedTensors.of(data, data.features.copy(), torch.device("cpu")).batch(np.arange(len(sizes)))


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


# Values among the settings of an objective: tested in test_values.py.
CLASSES = {name: getattr(objectives, name) for name in objectives.__all__ if inspect.isclass(getattr(objectives, name))}
PARTS = {name for name, cls in CLASSES.items() if issubclass(cls, SettingsValue)}


def test_every_objective_is_listed_here():
    classes = {
        name
        for name in objectives.__all__
        if inspect.isclass(getattr(objectives, name)) and hasattr(getattr(objectives, name), "__dataclass_fields__")
    }
    assert classes - {"ObjectiveValue"} - PARTS == set(OBJECTIVES)


@ALL
@pytest.mark.parametrize("scale", [1.0, 1e4])
@pytest.mark.parametrize("has_labels", [True, False])
def test_losses_and_gradients_are_finite_and_padding_gets_none(name, scale, has_labels):
    batch = batch_of([4, 2], [0, 2, 1, 0, 1, 0] if has_labels else [0] * 6)
    scores = (scale * torch.randn(2, 4, generator=seeded())).requires_grad_()
    value = new_objective(name)(scores, batch, generator=seeded())
    value.loss.backward()
    assert value.loss.isfinite()
    assert np.isfinite(float(value.report))
    assert scores.grad.isfinite().all()
    assert (scores.grad[~batch.mask] == 0).all()


@pytest.mark.parametrize("name", [name for name in OBJECTIVES if name != "Hybrid"])  # which samples
def test_more_padding_changes_nothing(name):
    batch = batch_of([3, 2], [0, 2, 1, 1, 0])
    scores = torch.randn(2, 3, generator=seeded())
    wider = [torch.nn.functional.pad(values, (0, 2)) for values in (scores, batch.labels, batch.mask, batch.groups)]
    padding = Padding(mask=wider[2], cells=batch.padding.cells // 3 * 5 + batch.padding.cells % 3)
    padded = Batch(features=batch.features, labels=wider[1], mask=wider[2], padding=padding, groups=wider[3])
    narrow, wide = new_objective(name)(scores, batch), new_objective(name)(wider[0], padded)
    assert float(wide.report) == pytest.approx(float(narrow.report), rel=1e-5)


@pytest.mark.parametrize("name", SAMPLING)
def test_samples_come_from_the_generator_and_leave_the_global_one_alone(name):
    batch = batch_of([5, 4], [0, 2, 1, 0, 1, 0, 1, 0, 3])
    scores = torch.randn(2, 5, generator=seeded())
    objective = getattr(objectives, name)(**SAMPLING[name])
    before = torch.get_rng_state()
    reports = [float(objective(scores, batch, generator=seeded(seed)).report) for seed in (3, 3, 4)]
    assert torch.equal(torch.get_rng_state(), before)
    assert reports[0] == reports[1] != reports[2]


UNREAD = {
    "PolicyGradient": [({"num_samples": 4}, "num_samples=4"), ({"control": "mean"}, "control='mean'")],
    "Hybrid": [
        ({"gamma": 1.0, "loss": "softmax"}, "loss='softmax'"),
    ],
    "FairPolicyGradient": [
        ({"num_samples": 4}, "num_samples=4"),
        ({"penalty": 1.0}, "penalty=1.0"),
    ],
}


@ALL
def test_a_changed_setting_that_nothing_reads_is_refused(name):
    cls = getattr(objectives, name)
    assert any(described.read_when for described in describe_settings(cls)) == (name in UNREAD)
    for settings, message in UNREAD.get(name, []):
        with pytest.raises(rp.RankPolicyError, match=f"{name}: {message} would not be read: it is read only when"):
            new_objective(name, **settings)
    with pytest.raises(rp.RankPolicyError, match=f"{name} has no setting 'depth'"):
        new_objective(name, depth=1)
    assert all(described.help for described in describe_settings(cls))
