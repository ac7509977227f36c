"""A setting is declared once; check, help, command line and descriptions follow from the declaration."""

import dataclasses
from dataclasses import dataclass

import pytest

from rankpolicy.declarations.setting_texts import describe_settings, parse_setting
from rankpolicy.declarations.settings import (
    ReadWhen,
    changed_settings,
    check_settings,
    documented,
    setting,
    share_settings,
)
from rankpolicy.types import RankPolicyError

DRAWS = ReadWhen(condition="the estimator draws samples", holds=lambda owner: owner.estimator == "sampled")


@documented
@dataclass(kw_only=True)
class Example:
    """An example."""

    epochs: int = setting(100, "Passes over the data.", at_least=1)
    rate: float = setting(0.1, "Step size.", above=0, at_most=1)
    widths: tuple[int, ...] = setting((64,), "Layer widths.", at_least=1)
    patience: int | None = setting(5, "Epochs to wait.", at_least=1)
    estimator: str = setting("exact", "How gradients are estimated.", choices=("exact", "sampled"))
    num_samples: int = setting(32, "Rankings drawn per query.", at_least=1, read_when=DRAWS)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epochs": 0}, "epochs must be at least 1; got 0"),
        ({"epochs": True}, "epochs must be a whole number; got True"),
        ({"rate": 0}, "rate must be above 0 and at most 1; got 0"),
        ({"rate": float("inf")}, "rate must be a number; got inf"),
        ({"widths": 64}, r"widths must be a list of whole numbers; got 64. For a single one write \(64,\)"),
        ({"widths": (64, 0)}, r"widths must be at least 1; got \(64, 0\)"),
        ({"patience": 0}, "patience must be at least 1 or None; got 0"),
        ({"estimator": "exakt"}, "Unknown estimator 'exakt'. Did you mean 'exact'"),
        ({"num_samples": 8}, "num_samples=8 would not be read: it is read only when the estimator draws samples"),
    ],
)
def test_what_a_setting_cannot_be_is_refused(settings, message):
    with pytest.raises(RankPolicyError, match=message):
        check_settings(Example(**settings))


def test_a_setting_at_its_default_is_never_unread():
    accepted = [Example(), Example(num_samples=32), Example(estimator="sampled", num_samples=8, patience=None)]
    assert [check_settings(settings) for settings in accepted] == [None] * 3


def test_help_shows_every_declaration():
    assert (
        "num_samples : a whole number, at least 1, default 32\n    Rankings drawn per query. Read only when"
        in Example.__doc__
    )
    assert "estimator : 'exact' | 'sampled', default 'exact'" in Example.__doc__
    described = {found.name: found for found in describe_settings(Example)}
    assert described["rate"].range == "above 0 and at most 1"
    assert described["patience"].kind == "a whole number or None"


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("epochs", "7", 7),
        ("widths", "8, 4", (8, 4)),
        ("patience", "none", None),
        ("patience", "3", 3),
        ("rate", "1e-2", 0.01),
    ],
)
def test_text_becomes_the_kind_of_the_setting(name, text, value):
    assert parse_setting(Example, name, text) == value


@pytest.mark.parametrize(("name", "text"), [("epochs", "3.5"), ("epochs", "none"), ("rate", "nan"), ("patience", "x")])
def test_text_of_another_kind_is_refused(name, text):
    with pytest.raises(RankPolicyError, match=f"setting {name} must be"):
        parse_setting(Example, name, text)


def test_two_classes_share_settings_by_name():
    @dataclass(frozen=True, kw_only=True)
    class Objective:
        estimator: str
        num_samples: int
        reward: str

    made = share_settings(Objective, Example(estimator="sampled", num_samples=4), reward="ndcg")
    assert dataclasses.asdict(made) == {"estimator": "sampled", "num_samples": 4, "reward": "ndcg"}


def test_changed_settings_are_those_that_differ():
    assert changed_settings(Example(epochs=100, rate=0.5)) == {"rate": 0.5}
