"""What every setting with settings of its own promises, over the rankers that have some: fairness, loss, epsilon."""

import inspect
from dataclasses import fields, replace

import numpy as np
import pytest

import rankpolicy as rp
from rankpolicy.cli.support.method_settings import parse_settings
from rankpolicy.data import make_fair_synthetic
from rankpolicy.declarations.setting_texts import describe_settings
from rankpolicy.rankers import RANKERS

MEMBERS = [
    pytest.param(ranker, setting, name, id=f"{ranker}-{setting}-{name}")
    for ranker in RANKERS
    for setting, kind in RANKERS[ranker].value_settings.items()
    for name in kind.members
]
ALL = pytest.mark.parametrize(("ranker", "setting", "name"), MEMBERS)
DATA = make_fair_synthetic(8, 5, random_state=0)
QUICK = {"boosted-policy": {"strength": 1.0, "num_trees": 2, "min_items_in_leaf": 2}}
# One setting of each kind, changed, in Python and in text.
CHANGE = {
    "fairness": ("merit", "exp2", "exp2"),
    "loss": ("empty_penalty", 0.5, "0.5"),
    "epsilon": ("share", 0.25, "0.25"),
}


def value_class(ranker, setting, name):
    return RANKERS[ranker].value_settings[setting].members[name]


def new_ranker(ranker, **settings):
    return RANKERS[ranker](**QUICK.get(ranker, {"epochs": 1}) | settings)


def test_there_are_some():
    assert {param.values[1] for param in MEMBERS} == {"fairness", "loss", "epsilon"}


@ALL
def test_a_name_stands_for_the_value_with_the_defaults(ranker, setting, name):
    kind = RANKERS[ranker].value_settings[setting]
    value = value_class(ranker, setting, name)()
    assert kind.of(name) == value == kind.of(value.to_dict())
    assert value.name == name
    for wrong in (value_class(ranker, setting, name), object()):
        with pytest.raises(rp.RankPolicyError, match=f"{setting} must be a "):
            new_ranker(ranker, **{setting: wrong})
    with pytest.raises(rp.RankPolicyError, match=f"Unknown {setting} 'nonsense'"):
        new_ranker(ranker, **{setting: "nonsense"})


@ALL
def test_every_setting_is_explained_and_others_are_refused(ranker, setting, name):
    cls = value_class(ranker, setting, name)
    for described in describe_settings(cls):
        assert len(described.help) > 10
        assert f"{described.name} : " in inspect.getdoc(cls)
    with pytest.raises(rp.RankPolicyError, match=f"{cls.__name__} has no setting 'depth'"):
        cls(depth=3)


@ALL
def test_a_ranker_reaches_the_settings_of_the_value(ranker, setting, name):
    field, changed, text = CHANGE[setting]
    cls = value_class(ranker, setting, name)
    fresh = new_ranker(ranker, **{setting: name})
    assert {key for key in fresh.get_params() if key.startswith(f"{setting}__")} == {
        f"{setting}__{each.name}" for each in fields(cls)
    }
    assert getattr(fresh.set_params(**{f"{setting}__{field}": changed}), setting) == cls(**{field: changed})
    texts = {setting: name, f"{setting}.{field}": text}
    assert parse_settings(RANKERS[ranker], texts) == {setting: name, f"{setting}__{field}": changed}
    with pytest.raises(rp.RankPolicyError, match=f"has no setting '{field}'; it belongs to {setting}"):
        RANKERS[ranker](**{field: changed})


@ALL
def test_a_saved_ranker_knows_its_value_and_can_be_trained_again(ranker, setting, name, tmp_path):
    field, changed, _ = CHANGE[setting]
    value = replace(value_class(ranker, setting, name)(), **{field: changed})
    for given in (name, value):
        fitted = new_ranker(ranker, **{setting: given}).fit(DATA, progress=False)
        fitted.save(tmp_path / "model.rp")
        loaded = rp.load(tmp_path / "model.rp")
        kind = RANKERS[ranker].value_settings[setting]
        assert kind.of(getattr(loaded, setting)) == kind.of(given)
        np.testing.assert_allclose(loaded.predict(DATA), fitted.predict(DATA), rtol=1e-5)
        loaded.fit(DATA, progress=False)


@pytest.mark.parametrize(
    "settings", [{"ranker": "bandit-rank", "gamma": 0.0}, {"ranker": "boosted-policy", "strength": 0.0}]
)
def test_a_loaded_ranker_that_does_not_read_the_value_can_be_trained_again(settings, tmp_path):
    ranker = new_ranker(**settings).fit(DATA, progress=False)
    ranker.save(tmp_path / "model.rp")
    loaded = rp.load(tmp_path / "model.rp").fit(DATA, progress=False)
    np.testing.assert_allclose(loaded.predict(DATA), ranker.predict(DATA), rtol=1e-5)
