"""What the settings of tree, linear and post-processing rankers promise."""

import dataclasses
import math

import pytest

import rankpolicy as rp
from rankpolicy.declarations.setting_texts import describe_settings
from rankpolicy.declarations.settings import declaration_of, setting_names
from rankpolicy.rankers import RANKERS
from rankpolicy.rankers.networks.network import NetworkRanker

NAMES = [name for name in RANKERS if not issubclass(RANKERS[name], NetworkRanker)]
# Any value may be the name of a group.
SETTINGS = [
    (name, setting) for name in NAMES for setting in setting_names(RANKERS[name]) if setting != "protected_group"
]


@pytest.mark.parametrize("name", NAMES)
def test_settings_are_few_and_explained(name):
    described = describe_settings(RANKERS[name])
    assert len(described) <= 18
    assert all(len(setting.help) > 20 for setting in described)
    for setting in described:
        assert f"\n{setting.name} : " in RANKERS[name].__doc__


@pytest.mark.parametrize(("name", "setting"), SETTINGS)
def test_values_out_of_range_are_refused_when_a_ranker_is_made(name, setting):
    declared = declaration_of(RANKERS[name], setting)
    beyond = {
        "at_least": -1 if declared.at_least is None else declared.at_least - 1,
        "above": declared.above,
        "at_most": None if declared.at_most is None else declared.at_most + 1,
        "below": declared.below,
    }
    wrong = [value for bound, value in beyond.items() if getattr(declared, bound) is not None]
    wrong += ["nonsense"] if declared.choices is not None else []
    field = next(field for field in dataclasses.fields(RANKERS[name]) if field.name == setting)
    wrong += [math.nan, "many"] if isinstance(field.default, float) else []
    wrong += [1.5, True, "many"] if type(field.default) is int else []
    for value in wrong:
        with pytest.raises(rp.RankPolicyError, match=setting):
            RANKERS[name](**{setting: value})


@pytest.mark.parametrize(
    ("name", "settings", "unread"),
    [
        ("boosted-policy", {"fairness": "individual"}, "fairness"),
        ("boosted-policy", {"fairness": rp.fairness.GroupExposure(merit="exp2")}, "fairness"),
        ("boosted-policy", {"strength": 1.0, "valid_metric": "map"}, "valid_metric"),
        ("coordinate-ascent", {"num_steps": 1, "step_scale": 3.0}, "step_scale"),
        ("fair-lp", {"max_disparity": 0.1, "strength": 2.0}, "strength"),
        ("fair-exposure", {"max_disparity": 0.1, "strength": 2.0}, "strength"),
        ("fair-exposure", {"aim": "equal_exposure", "max_disparity": 0.1}, "max_disparity"),
        ("fair-exposure", {"label_model": "binary", "num_neighbours": 5}, "num_neighbours"),
        ("fair-lp", {"relevance": "boosted-policy", "relevance_settings": {"fairness__merit": "exp2"}}, "fairness"),
    ],
)
def test_a_changed_setting_that_nothing_reads_is_refused(name, settings, unread):
    with pytest.raises(rp.RankPolicyError, match=f"{unread}=.* would not be read: it is read only when"):
        RANKERS[name](**settings)
