"""What all estimators of position bias share, over the table of them."""

from dataclasses import replace

import numpy as np
import pytest

import rankpolicy as rp
from rankpolicy.clicks import POSITION_BIAS_METHODS, PositionBias, estimate_position_bias, make_biased_log, pair_counts
from rankpolicy.clicks.log.log_pairs import pairs_of

PROPENSITIES = np.array([1.0, 0.6, 0.35, 0.2])
RELEVANCE = np.array([[0.9, 0.6, 0.4, 0.3, 0.2], [0.5, 0.7, 0.3, 0.6, 0.8], [0.4, 0.2, 0.8, 0.5, 0.6]])
METHODS = pytest.mark.parametrize("method", POSITION_BIAS_METHODS)


def simulated(method, num_sessions, seed):
    traffic = "random" if method.startswith("randomised") else "swaps" if method == "swaps" else "rankers"
    return make_biased_log(
        num_sessions, propensities=PROPENSITIES, relevance=RELEVANCE, traffic=traffic, random_state=seed
    )


def options(method, made):
    sessions = len(made.log)
    return {
        "randomised-by-segment": {"segments": np.arange(sessions) % 2},
        "randomised-regression": {"query_features": np.arange(sessions)[:, None] % 3},
        "swaps": {"swaps": made.swaps},
    }.get(method, {})


def of_rows(log, rows):
    return replace(
        log, queries=log.queries[rows], items=log.items[rows], clicks=log.clicks[rows], counts=log.counts[rows]
    )


def estimated(method, made, **settings):
    return estimate_position_bias(made.log, method=method, **options(method, made), **settings)


@METHODS
def test_known_propensities_come_back(method):
    """Over 12 logs the mean log error is 0 within four of its standard errors, and each error is what one resample says it is."""
    errors, widths = [], []
    for seed in range(12):
        found = estimated(
            method, simulated(method, 4000, seed), num_resamples=20 if seed == 0 else 0, random_state=seed
        )
        errors.append(np.log(found.propensities[1:] / PROPENSITIES[1:]))
        if seed == 0:
            widths = np.log(found.intervals[1:, 1] / found.intervals[1:, 0])
    errors = np.array(errors)
    spread = errors.std(0, ddof=1)
    assert (abs(errors.mean(0)) < 4 * spread / np.sqrt(12) + 0.01).all()
    # A 95 % interval is 3.92 standard errors wide; 12 logs and 20 resamples tell both within a factor of about two.
    assert (widths / (3.92 * spread) > 0.4).all()
    assert (widths / (3.92 * spread) < 2.5).all()


STEEP = np.array([1.0, 0.5, 0.25, 0.1])


def joined(first, second):
    """Two logs as one, the sessions of the first on top."""
    columns = {name: np.concatenate([getattr(made.log, name) for made in (first, second)]) for name in COLUMNS}
    return replace(first.log, **columns)


COLUMNS = ("queries", "items", "clicks", "counts")


def with_features(method, seed):
    """A log, what the method is told about its pairs or sessions, and the curves (feature, position) behind it."""
    if method == "em":
        made = simulated("em", 4000, seed)
        pairs = pairs_of(made.log)
        queries = np.array(pairs.query_names, int)[pairs.queries]
        relevance = RELEVANCE[queries, np.array(pairs.item_names, int)[pairs.items]]
        features = np.column_stack([np.log(relevance / (1 - relevance)), np.cos(np.arange(len(pairs)))])
        return made.log, {"pair_features": features}, PROPENSITIES[None]
    flat, steep = (
        make_biased_log(4000, propensities=curve, relevance=RELEVANCE, traffic="random", random_state=2 * seed + second)
        for second, curve in enumerate((PROPENSITIES, STEEP))
    )
    kind = np.repeat([0, 1], 4000)
    given = {"segments": kind} if method == "randomised-by-segment" else {"query_features": kind[:, None]}
    return joined(flat, steep), given, np.stack([PROPENSITIES, STEEP])


@pytest.mark.parametrize("method", ["em", "randomised-by-segment", "randomised-regression"])
def test_known_propensities_come_back_with_features(method):
    """Twelve logs: the mean log error is 0 within four of its standard errors, for every value of the features."""
    errors = []
    for seed in range(12):
        log, given, curves = with_features(method, seed)
        estimate = estimate_position_bias(log, method=method, num_resamples=0, **given)
        if method == "em":
            found = estimate.propensities[None]
        elif method == "randomised-by-segment":
            found = estimate.of_segments([0, 1])
        else:
            found = estimate.of_features(np.array([[0.0], [1.0]]))
        errors.append(np.log(found[:, 1:] / curves[:, 1:]))
    errors = np.array(errors)
    assert (abs(errors.mean(0)) < 4 * errors.std(0, ddof=1) / np.sqrt(12) + 0.01).all()
    assert (errors.std(0, ddof=1) < 0.2).all()  # so that the bound above can fail


@METHODS
def test_counts_stand_for_repeated_sessions(method):
    made = simulated(method, 3000, 5)
    given, counts = options(method, made), 1 + np.arange(3000) % 3
    counted = estimate_position_bias(replace(made.log, counts=counts), method=method, num_resamples=0, **given)
    rows = np.repeat(np.arange(3000), counts)
    repeated = estimate_position_bias(
        of_rows(made.log, rows),
        method=method,
        num_resamples=0,
        **{name: values[rows] for name, values in given.items()},
    )
    np.testing.assert_allclose(counted.propensities, repeated.propensities, rtol=1e-9)
    assert counted.num_sessions == repeated.num_sessions == counts.sum()


@METHODS
def test_the_same_shares_give_the_same_curve(method):
    made = simulated(method, 3000, 5)
    doubled = replace(made.log, counts=2 * made.log.counts)
    once = estimated(method, made, num_resamples=0)
    twice = estimate_position_bias(doubled, method=method, num_resamples=0, **options(method, made))
    np.testing.assert_allclose(twice.propensities, once.propensities, rtol=1e-5)
    assert twice.num_sessions == 2 * once.num_sessions


@METHODS
def test_names_do_not_matter(method):
    made = simulated(method, 3000, 6)
    log = made.log
    # Codes of items turned round: pairs come in another order.
    turned = type(log)(
        query_names=log.query_names,
        item_names=log.item_names[::-1],
        queries=log.queries,
        items=len(log.item_names) - 1 - log.items,
        clicks=log.clicks,
        counts=log.counts,
    )
    other = estimate_position_bias(turned, method=method, num_resamples=0, **options(method, made))
    np.testing.assert_allclose(other.propensities, estimated(method, made, num_resamples=0).propensities, rtol=1e-4)


@METHODS
def test_the_result_says_what_it_rests_on(method):
    made = simulated(method, 2000, 7)
    found = estimated(method, made, num_resamples=10, level=0.9)
    again = estimated(method, made, num_resamples=10, level=0.9)
    np.testing.assert_array_equal(found.intervals, again.intervals)
    assert found.propensities[0] == 1.0
    assert found.is_identified.all()
    assert (found.intervals[:, 0] <= found.intervals[:, 1]).all()
    np.testing.assert_array_equal(found.intervals[0], [1.0, 1.0])
    assert (found.method, found.level, found.num_resamples, found.resampled) == (method, 0.9, 10, "sessions")
    assert (found.num_sessions, found.num_clicks) == (2000, made.log.num_clicks)
    _, counts = pair_counts(made.log)
    assert found.num_swap_pairs == ((counts.shown > 0).sum(1) > 1).sum()
    np.testing.assert_allclose(found.click_through, made.log.clicks.mean(0))
    assert PositionBias.from_dict(found.to_dict()).to_dict() == found.to_dict()


@METHODS
def test_what_was_saved_is_loaded(method, tmp_path):
    found = estimated(method, simulated(method, 1000, 7), num_resamples=0)
    for name in ("bias.json", "bias.json.gz"):
        found.save(tmp_path / name)
        assert rp.load(tmp_path / name).to_dict() == found.to_dict()
        assert rp.clicks.read_position_bias(tmp_path / name, method=method).to_dict() == found.to_dict()
    with pytest.raises(rp.RankPolicyError, match="Unknown method 'none'"):
        rp.clicks.read_position_bias(tmp_path / "bias.json", method="none")


@METHODS
def test_what_a_method_does_not_use_is_refused(method):
    made = simulated(method, 50, 7)
    own = options(method, made)
    for name, value in {
        "segments": np.arange(50) % 2,
        "query_features": np.zeros((50, 1)),
        "swaps": np.zeros((50, 2), int),
        "pair_features": np.zeros((15, 1)),
        "click_model": "pbm",
    }.items():
        chosen = POSITION_BIAS_METHODS[method]
        if name in own or name == chosen.takes:
            continue
        with pytest.raises(rp.RankPolicyError, match=f"'{method}' does not use {name}: it is read by "):
            estimate_position_bias(made.log, method=method, **own, **{name: value})
    if own:
        with pytest.raises(rp.RankPolicyError, match=f"'{method}' needs {next(iter(own))}"):
            estimate_position_bias(made.log, method=method)


def test_an_unknown_method_is_named():
    with pytest.raises(rp.RankPolicyError, match=r"Unknown method 'all-pair'\. Did you mean 'all-pairs'\?"):
        estimate_position_bias(simulated("em", 50, 0).log, method="all-pair")


@METHODS
def test_numpy_alone_gives_the_same(method, monkeypatch):
    made = simulated(method, 1500, 8)
    compiled = estimated(method, made, num_resamples=5)
    monkeypatch.setattr("rankpolicy.clicks.log.log_pairs.HAS_NUMBA", False)
    plain = estimated(method, made, num_resamples=5)
    np.testing.assert_allclose(plain.propensities, compiled.propensities, rtol=1e-9)
    np.testing.assert_allclose(plain.intervals, compiled.intervals, rtol=1e-9)
