"""What every aim of fairness promises, over the one table that lists them."""

import inspect
from dataclasses import fields, replace

import numpy as np
import pytest
import torch

import rankpolicy as rp
from rankpolicy.clicks.position_bias.bias import PositionBias
from rankpolicy.data import make_fair_synthetic
from rankpolicy.declarations.setting_texts import describe_settings
from rankpolicy.declarations.settings import declaration_of
from rankpolicy.fairness import AIMS, POSITION_BIASES, as_aim, position_bias
from rankpolicy.objectives import FairPolicyGradient
from rankpolicy.policies import PlackettLuce
from tests.enumeration import all_rankings
from tests.objectives.test_objectives import batch_of

ALL = pytest.mark.parametrize("name", AIMS)
DATA = make_fair_synthetic(8, 5, random_state=0)
OTHER = {
    "merit": "exp2",
    "rank_weights": (1.0, 0.4, 0.2, 0.1),
    "impact": True,
    "amortized": True,
    "cross_multiplied": True,
    "parity": 0.5,
}


def setting_names(name):
    return [field.name for field in fields(AIMS[name])]


def changed(name):
    return AIMS[name](**{each: OTHER[each] for each in setting_names(name)})


@ALL
def test_a_name_stands_for_the_value_with_the_defaults(name):
    assert as_aim(name) == AIMS[name]()
    assert AIMS[name].name == name


@ALL
def test_settings_survive_a_dict_and_are_explained(name):
    assert as_aim(changed(name).to_dict()) == changed(name)
    for described in describe_settings(AIMS[name]):
        assert len(described.help) > 15
        assert f"{described.name} : " in inspect.getdoc(AIMS[name])


@ALL
def test_wrong_settings_are_refused(name):
    with pytest.raises(rp.RankPolicyError, match=f"{AIMS[name].__name__} has no setting 'depth'. Known:"):
        AIMS[name](depth=3)
    with pytest.raises(rp.RankPolicyError, match=r"Unknown merit 'exp'. Did you mean 'exp2'"):
        AIMS[name](merit="exp")
    with pytest.raises(rp.RankPolicyError, match=r"merit must be a name .* or a function of labels; got 3"):
        AIMS[name](merit=3)
    with pytest.raises(rp.RankPolicyError, match=r"Unknown rank_weights 'log'. Did you mean 'log2'"):
        AIMS[name](rank_weights="log")
    with pytest.raises(rp.RankPolicyError, match="never increase"):
        AIMS[name](rank_weights=np.array([0.5, 1.0]))
    with pytest.raises(rp.RankPolicyError, match="must be a value, with parentheses"):
        as_aim(AIMS[name])
    for setting in setting_names(name):
        if declaration_of(AIMS[name], setting).at_most is not None:
            with pytest.raises(rp.RankPolicyError, match=f"{setting} must be at least"):
                AIMS[name](**{setting: 1.5})


@ALL
def test_a_ranker_reaches_the_settings_of_its_aim(name):
    ranker = rp.FairPGRank(fairness=name)
    deep = ranker.get_params()
    assert {key for key in deep if key.startswith("fairness__")} == {
        f"fairness__{each}" for each in setting_names(name)
    }
    assert ranker.set_params(fairness__merit="exp2").fairness == AIMS[name](merit="exp2")
    with pytest.raises(rp.RankPolicyError, match=f"{AIMS[name].__name__} has no setting 'depth'"):
        ranker.set_params(fairness__depth=3)


@ALL
def test_saved_rankers_know_their_aim(name, tmp_path):
    aim = replace(changed(name), **({"amortized": False, "parity": 0.0} if name == "group" else {}))
    for ranker in (
        rp.FairPGRank(fairness=aim, epochs=2, model=rp.models.Linear()),
        rp.BoostedPolicy(fairness=aim, strength=1.0, num_trees=2, min_items_in_leaf=2),
    ):
        ranker.fit(DATA).save(tmp_path / "model.rp")
        loaded = rp.load(tmp_path / "model.rp")
        assert loaded.fairness == aim
        assert loaded.get_params() == ranker.get_params()
        np.testing.assert_allclose(loaded.predict(DATA), ranker.predict(DATA), rtol=1e-5)
    rp.FairPGRank(fairness=name, epochs=2).fit(DATA).save(tmp_path / "model.rp")
    assert rp.load(tmp_path / "model.rp").fairness == name


def cube_root(labels):
    return labels ** (1 / 3)


@ALL
def test_a_merit_of_the_users_own_is_saved_by_name(name, tmp_path):
    ranker = rp.FairPGRank(fairness=AIMS[name](merit=cube_root), epochs=2).fit(DATA)
    ranker.save(tmp_path / "model.rp")
    loaded = rp.load(tmp_path / "model.rp")
    np.testing.assert_allclose(loaded.predict(DATA), ranker.predict(DATA), rtol=1e-5)
    with pytest.raises(rp.RankPolicyError, match=r"merit was a function of your own, cube_root.*fairness__merit"):
        loaded.fit(DATA)
    loaded.set_params(fairness__merit=cube_root).fit(DATA)
    assert loaded.report_ == ranker.report_


LABELS = torch.tensor([[1.0, 0.0, 2.0, 1.0], [2.0, 1.0, 1.0, 0.0]], dtype=torch.float64)
MASK = torch.tensor([[True] * 4, [True, True, True, False]])
GROUPS = torch.tensor([[0, 1, 0, 1], [0, 1, 1, 0]])
SCORES = torch.tensor([[0.3, -0.2, 0.9, 0.1], [1.1, 0.2, -0.4, 0.0]], dtype=torch.float64)
BATCH = replace(batch_of(LABELS, MASK), groups=GROUPS)


def enumerated(scores, aim, strength, reward=rp.metrics.parse_metric("ndcg")):
    """Mean over queries of the expected reward - strength * disparity, from all rankings of each query."""
    utility, exposure = [], torch.zeros_like(scores)
    bias = aim.position_bias(4, dtype=torch.float64)
    for query, n in enumerate((4, 3)):
        rows, mask = slice(query, query + 1), torch.ones(1, n, dtype=torch.bool)
        rankings = all_rankings(n)
        chance = PlackettLuce(scores[rows, :n], mask).log_prob(rankings).exp()[:, 0]
        utility.append(float(chance @ reward(rankings, LABELS[rows, :n], mask)[:, 0]))
        for ranking, weight in zip(rankings[:, 0], chance, strict=True):
            exposure[query, ranking] += weight * bias[:n]
    disparity = aim.disparity(exposure, LABELS, MASK, groups=GROUPS, num_groups=2)
    total = disparity.mean * disparity.num_counted if disparity.num_counted else 0.0
    return sum(utility) / 2 - strength * total / 2


AIM_CHANGES = [
    {},
    {"merit": "exp2"},
    {"merit": lambda labels: labels.sqrt()},
    {"rank_weights": "inverse"},
    {"rank_weights": (1.0, 0.3, 0.1)},
    {"impact": True},
    {"amortized": True},
    {"cross_multiplied": True},
    {"amortized": True, "cross_multiplied": True, "impact": True, "merit": "exp2", "rank_weights": (1.0, 0.5)},
]


@pytest.mark.parametrize(
    ("name", "change"),
    [
        pytest.param(name, change, id="-".join([name, *change]))
        for name in AIMS
        for change in AIM_CHANGES
        if set(change) <= set(setting_names(name))
    ],
)
def test_value_and_gradient_are_those_of_enumeration(name, change):
    aim, strength = AIMS[name](**change), 3.0
    objective = FairPolicyGradient(reward="ndcg", fairness=aim, strength=strength, num_groups=2)
    scores = SCORES.clone().requires_grad_()
    value = objective(scores, BATCH)
    assert float(value.report) == pytest.approx(enumerated(SCORES, aim, strength), abs=1e-4)
    value.loss.backward()
    step = 1e-4
    for query, item in MASK.nonzero().tolist():
        shift = torch.zeros_like(SCORES)
        shift[query, item] = step
        slope = (enumerated(SCORES + shift, aim, strength) - enumerated(SCORES - shift, aim, strength)) / (2 * step)
        assert -scores.grad[query, item].item() == pytest.approx(slope, abs=1e-3)


@ALL
def test_named_weights_are_position_biases(name):
    for kind in POSITION_BIASES:
        torch.testing.assert_close(AIMS[name](rank_weights=kind).position_bias(5), position_bias(5, kind=kind))


def measured_bias(propensities):
    known = np.asarray(propensities, dtype=np.float64)
    return PositionBias(
        method="em",
        propensities=known,
        intervals=np.full((len(known), 2), np.nan),
        level=0.95,
        resampled="sessions",
        num_resamples=0,
        click_through=known,
        num_sessions=10,
        num_clicks=5,
        num_swap_pairs=0,
    )


@ALL
def test_an_estimate_of_position_bias_gives_the_weights_of_ranks(name):
    """Ranks that the log does not determine at the end weigh 0; one between others is refused."""
    aim = AIMS[name](rank_weights=measured_bias([1.0, 0.6, 0.25, np.nan]))
    assert aim.rank_weights == (1.0, 0.6, 0.25)
    assert aim.position_bias(5, dtype=torch.float64).tolist() == [1.0, 0.6, 0.25, 0.0, 0.0]
    with pytest.raises(rp.RankPolicyError, match=r"must be known at every rank and never increase.*fmin.accumulate"):
        AIMS[name](rank_weights=measured_bias([1.0, np.nan, 0.25]))


def test_a_file_of_position_bias_weighs_ranks_in_a_tradeoff(tmp_path):
    from rankpolicy.cli.support.tradeoff_data import AimOptions

    measured_bias([1.0, 0.6]).save(tmp_path / "bias.json")
    aim = AimOptions(propensities=tmp_path / "bias.json", amortized=True).value()
    assert aim == AIMS["group"](rank_weights=(1.0, 0.6), amortized=True)
    with pytest.raises(rp.RankPolicyError, match="give one of them"):
        AimOptions(propensities=tmp_path / "bias.json", rank_weights="inverse").value()


@ALL
@pytest.mark.parametrize("merit", ["identity", "exp2", torch.sqrt, lambda labels: labels**1.5])
def test_arrays_give_the_disparity_of_tensors(name, merit):
    generator = np.random.default_rng(3)
    labels, mask = generator.integers(1, 4, (6, 5)), np.arange(5) < generator.integers(3, 6, 6)[:, None]
    given = (np.where(mask, generator.random((6, 5)), 0.0), labels, mask)
    options = {"groups": np.arange(5) % 2 + np.zeros((6, 1), np.int64), "num_groups": 2}
    for aim in (AIMS[name](merit=merit), replace(changed(name), merit=merit)):
        of_arrays = aim.disparity(*given, **options)
        of_tensors = aim.disparity(
            *map(torch.from_numpy, given), groups=torch.from_numpy(options["groups"]), num_groups=2
        )
        assert isinstance(of_arrays.gradient, np.ndarray)
        assert of_arrays.mean == pytest.approx(of_tensors.mean, rel=1e-12)
        np.testing.assert_allclose(of_arrays.gradient, of_tensors.gradient.numpy(), rtol=1e-12, atol=1e-15)
        bias = aim.position_bias(7)
        assert isinstance(bias, np.ndarray)
        np.testing.assert_array_equal(bias, aim.position_bias(7, dtype=torch.float64).numpy())
