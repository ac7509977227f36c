"""Off-policy estimates from Parquet files that are read block by block."""

import re

import numpy as np
import polars
import pytest
import torch

from rankpolicy.off_policy import (
    OffPolicyLog,
    TargetProbabilities,
    estimate_policy_value,
    scan_off_policy_log,
    scanned_log,
)
from rankpolicy.off_policy.intervals import RatioMoments, SumOfRatios
from rankpolicy.policies import Mixture, PlackettLuce
from rankpolicy.types import RankPolicyError

NUM_ROUNDS, NUM_ITEMS = 500, 4
# Context 1 has two items only, so its lists end early.
SIZES = np.array([4, 2, 3])
MASK = torch.from_numpy(np.arange(NUM_ITEMS) < SIZES[:, None])


@pytest.fixture(scope="module")
def log():
    """A uniform random policy over lists of up to three items."""
    generator = np.random.default_rng(0)
    contexts = generator.integers(3, size=NUM_ROUNDS)
    items, steps, marginals = (np.full((NUM_ROUNDS, 3), filling) for filling in (-1, 1.0, 1.0))
    rewards = np.zeros((NUM_ROUNDS, 3))
    for row, context in enumerate(contexts):
        size = SIZES[context]
        length = min(3, size)
        items[row, :length] = generator.permutation(size)[:length]
        steps[row, :length] = 1 / np.arange(size, size - length, -1)
        marginals[row, :length] = 1 / size
        rewards[row, :length] = generator.random(length) < 0.2 + 0.2 * items[row, :length]
    return OffPolicyLog(
        items=items,
        rewards=rewards,
        contexts=contexts,
        propensities=steps,
        marginal_propensities=marginals,
        list_propensities=steps.prod(1),
    )


def frame_of(log, rows=slice(None)):
    lengths = (log.items[rows] >= 0).sum(1)

    def lists(values):
        return [row[:length].tolist() for row, length in zip(values[rows], lengths, strict=True)]

    return polars.DataFrame(
        {
            "context": log.contexts[rows],
            "items": lists(log.items),
            "rewards": lists(log.rewards),
            "propensities": lists(log.propensities),
            "marginal_propensities": lists(log.marginal_propensities),
            "list_propensity": log.list_propensities[rows],
        }
    )


@pytest.fixture
def shards(log, tmp_path, monkeypatch):
    monkeypatch.setattr(scanned_log, "_BLOCK_ROWS", 64)
    for number, rows in enumerate((slice(0, 170), slice(170, 400), slice(400, None))):
        frame_of(log, rows).write_parquet(tmp_path / f"part{number}.parquet")
    return tmp_path


def plackett_luce():
    scores = torch.tensor([[0.5, 0.1, 1.0, -1.0], [1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 2.0, 0.0]], dtype=torch.float64)
    return PlackettLuce(scores, MASK)


def same(found, wanted):
    for name in ("value", "standard_error", "effective_sample_size", "mean_weight"):
        assert getattr(found, name) == pytest.approx(getattr(wanted, name), rel=1e-12), name
    assert found.interval == pytest.approx(wanted.interval, rel=1e-12)
    assert (found.num_rounds, found.num_clipped) == (wanted.num_rounds, wanted.num_clipped)


@pytest.mark.parametrize("estimator", ["ips", "snips", "iips", "sniips", "rips", "snrips"])
@pytest.mark.parametrize("clip", [None, 1.5])
def test_shards_give_what_the_log_in_memory_gives(log, shards, estimator, clip):
    scanned = scan_off_policy_log(shards)
    assert (len(scanned), scanned.num_positions) == (NUM_ROUNDS, 3)
    assert len(list(scanned.blocks())) == 9
    options = {"estimator": estimator, "clip": clip, "position_weights": [1.0, 0.5, 0.25], "interval": "t"}
    same(
        estimate_policy_value(scanned, plackett_luce(), **options),
        estimate_policy_value(log, plackett_luce(), **options),
    )


def test_a_given_model_of_rewards_and_a_mixture(log, shards):
    scanned = scan_off_policy_log(shards)
    table = np.random.default_rng(1).random((3, 3, NUM_ITEMS))
    for estimator in ("cascade-dr", "direct"):
        options = {"estimator": estimator, "tail_values": table}
        found, wanted = (estimate_policy_value(each, plackett_luce(), **options) for each in (scanned, log))
        assert found.value == pytest.approx(wanted.value, rel=1e-12)
        assert found.standard_error == pytest.approx(wanted.standard_error, rel=1e-12)
    rankings = torch.tensor([[[2, 1, 0, 3], [1, 0, 2, 3], [2, 1, 0, 3]], [[0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 2, 3]]])
    mixture = Mixture(rankings, torch.tensor([[0.7] * 3, [0.3] * 3]), MASK)
    same(estimate_policy_value(scanned, mixture), estimate_policy_value(log, mixture))


def test_moments_keep_their_digits_far_from_zero():
    generator = np.random.default_rng(0)
    above, below = 1e8 + generator.random((1000, 2)), 1e6 + generator.random((1000, 2))
    whole = SumOfRatios(numerators=above, denominators=below)
    moments = RatioMoments()
    for rows in np.split(np.arange(1000), [1, 17, 600]):
        moments.add(SumOfRatios(numerators=above[rows], denominators=below[rows]))
    assert moments.value == pytest.approx(whole.value, rel=1e-14)
    assert moments.standard_error() == pytest.approx(whole.standard_error(), rel=1e-6)


def refused(message, call, *arguments, **options):
    with pytest.raises(RankPolicyError, match=message) as error:
        call(*arguments, **options)
    assert "\n" not in str(error.value)


def test_what_needs_all_rounds_is_refused(shards):
    scanned = scan_off_policy_log(shards)
    refused("Use 'normal' or 't'", estimate_policy_value, scanned, plackett_luce(), interval="bootstrap")
    refused("Give tail_values", estimate_policy_value, scanned, plackett_luce(), estimator="cascade-dr")
    refused("Give a PlackettLuce", estimate_policy_value, scanned, TargetProbabilities(steps=np.ones((NUM_ROUNDS, 3))))


def test_a_shard_that_does_not_fit_is_named(log, shards):
    frame = frame_of(log, slice(0, 5))
    last = shards / "part9.parquet"
    frame.rename({"rewards": "clicks"}).write_parquet(last)
    refused(rf"{re.escape(str(last))} must have the column 'rewards'", scan_off_policy_log, shards)
    frame.with_columns(items=polars.lit(1)).write_parquet(last)
    refused(r"part9.parquet: the column 'items' must hold lists", scan_off_policy_log, shards)
    frame.with_columns(rewards=polars.Series([[1.0]] * 5)).write_parquet(last)
    refused(
        "part9.parquet.*rewards must have one entry",
        estimate_policy_value,
        scan_off_policy_log(shards),
        plackett_luce(),
    )
    whole = (shards / "part0.parquet").read_bytes()
    last.write_bytes(whole[: len(whole) // 2])
    refused("part9.parquet", scan_off_policy_log, shards)
    last.unlink()
    frame.drop("propensities", "marginal_propensities", "list_propensity").write_parquet(shards / "a.parquet")
    refused("must have a column propensities", scan_off_policy_log, shards / "a.parquet")
    refused("Unknown column", scan_off_policy_log, shards / "a.parquet", columns={"contexts": "query"})
    refused("part8.parquet", scan_off_policy_log, shards / "part8.parquet")


def test_columns_may_have_other_names(log, tmp_path):
    frame_of(log).rename({"context": "query"}).write_parquet(tmp_path / "log.parquet")
    found = estimate_policy_value(
        scan_off_policy_log(tmp_path / "log.parquet", columns={"context": "query"}), plackett_luce()
    )
    assert found.value == pytest.approx(estimate_policy_value(log, plackett_luce()).value, rel=1e-12)


@pytest.mark.parametrize("kind", [polars.UInt32, polars.UInt64, polars.Int8])
def test_items_of_any_whole_kind(log, tmp_path, kind):
    frame_of(log).with_columns(polars.col("items").cast(polars.List(kind))).write_parquet(tmp_path / "log.parquet")
    same(
        estimate_policy_value(scan_off_policy_log(tmp_path / "log.parquet"), plackett_luce()),
        estimate_policy_value(log, plackett_luce()),
    )


def test_lists_of_one_length_may_be_arrays(log, tmp_path):
    rows = np.flatnonzero((log.items >= 0).all(1))
    lists = frame_of(log, rows)
    arrays = lists.with_columns(polars.col("items", "rewards", "propensities").list.to_array(3))
    lists.write_parquet(tmp_path / "lists.parquet")
    arrays.write_parquet(tmp_path / "arrays.parquet")
    found, wanted = (
        estimate_policy_value(scan_off_policy_log(tmp_path / f"{name}.parquet"), plackett_luce())
        for name in ("arrays", "lists")
    )
    same(found, wanted)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("context", polars.lit("shoes"), "'context' must hold whole numbers; it holds String"),
        (
            "rewards",
            polars.Series([["a", "b", "c"]] * 5),
            r"'rewards' must hold lists of numbers; it holds List\(String\)",
        ),
        ("items", polars.Series([[0.5, 1.5]] * 5), "'items' must hold lists of whole numbers"),
        ("list_propensity", polars.lit("high"), "'list_propensity' must hold numbers"),
    ],
)
def test_columns_of_another_kind_are_refused_at_once(log, tmp_path, column, value, message):
    frame_of(log, slice(0, 5)).with_columns(value.alias(column)).write_parquet(tmp_path / "log.parquet")
    refused(message, scan_off_policy_log, tmp_path / "log.parquet")


def test_numbers_of_items_that_do_not_fit_are_refused_and_not_wrapped():
    with pytest.raises(RankPolicyError, match="up to 2147483647; got 4294967297"):
        OffPolicyLog(items=[[0, 2**32 + 1]], rewards=[[0.0, 1.0]], contexts=[0], propensities=[[0.5, 1.0]])
