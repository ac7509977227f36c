"""What every click model must do, over the table that lists them."""

from functools import partial

import numpy as np
import pytest

import rankpolicy as rp
from rankpolicy.clicks import CLICK_MODELS, ClickFitSettings, compare_click_models, fit_click_model, log_from_lists
from rankpolicy.clicks.log.log_pairs import pairs_of
from rankpolicy.clicks.models.fit import first_parameters, maximised
from rankpolicy.types import RankPolicyError
from tests.clicks.log.logs import every_click_vector, random_log

BY_EM = [name for name, kind in CLICK_MODELS.items() if kind.uses_em]
CLOSED = [name for name in CLICK_MODELS if name not in BY_EM]
NAMES_AND_PRIORS = [
    (name, prior)
    for name, kind in CLICK_MODELS.items()
    for prior in [(1.0, 1.0), (0.5, 2.0), None, *(["empirical"] if "attraction" in kind.axes else [])]
]


def few(name: str, iterations: int) -> dict[str, float]:
    """So many iterations of EM, for a model that is fitted by it."""
    return {"iterations": iterations, "tolerance": 0.0} if name in BY_EM else {}


@pytest.fixture(params=CLICK_MODELS)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.mark.parametrize("num_positions", [1, 2, 6])
def test_the_probabilities_of_all_click_vectors_add_up_to_one(name, num_positions):
    model = fit_click_model(name, random_log())
    total = np.exp(model.session_log_likelihoods(every_click_vector(num_positions))).sum()
    assert total == pytest.approx(1, abs=1e-12)


def test_unconditional_probabilities_are_sums_over_all_click_vectors(name):
    model, log = fit_click_model(name, random_log()), every_click_vector(6)
    weights = np.exp(model.session_log_likelihoods(log))
    np.testing.assert_allclose(model.click_probabilities(log)[0], weights @ log.clicks, atol=1e-12)


def test_conditional_probabilities_are_quotients_of_sums(name):
    model, log = fit_click_model(name, random_log()), every_click_vector(5)
    weights, conditional = np.exp(model.session_log_likelihoods(log)), model.conditional_click_probabilities(log)
    for row in (0, 5, 18, 31):
        for position in range(5):
            same_above = (log.clicks[:, :position] == log.clicks[row, :position]).all(1)
            if weights[same_above].sum() > 0:
                clicked = weights[same_above] @ log.clicks[same_above, position] / weights[same_above].sum()
                assert conditional[row, position] == pytest.approx(clicked, abs=1e-12)


def test_samples_follow_the_stated_probabilities(name):
    model, log, num_samples = fit_click_model(name, random_log()), every_click_vector(4), 40_000
    drawn = model.sample("0", [0, 1, 2, 3], num_samples, random_state=3)
    codes = drawn @ (1 << np.arange(3, -1, -1))  # the rows of every_click_vector count in binary
    expected = num_samples * np.exp(model.session_log_likelihoods(log))
    found = np.bincount(codes, minlength=16)
    assert (found[expected == 0] == 0).all()
    possible = expected > 0
    z = (found - expected)[possible] / np.sqrt(expected * (1 - expected / num_samples))[possible]
    assert abs(z).max() < 4


def test_its_user_clicks_as_the_model_says(name):
    """What user_of hands over is simulated as the model states, for lists in any order of its items."""
    from rankpolicy.kernels.clicks.walk import draw_clicks, random_source

    model, num_samples = fit_click_model(name, random_log()), 20_000
    user = model.user_of("1", [0, 2, 3, 6])
    assert user.kind == name
    walk, source, clicks, found = user.walk([2, 0, 3, 1]), random_source(5, 0), np.empty(4, np.int8), np.zeros(16)
    for _ in range(num_samples):
        source = np.uint64(draw_clicks(walk, source, clicks))
        found[clicks @ (8, 4, 2, 1)] += 1
    vectors = every_click_vector(4).clicks.tolist()
    log = log_from_lists(["1"] * 16, [[3, 0, 6, 2]] * 16, vectors)
    expected = num_samples * np.exp(model.session_log_likelihoods(log))
    assert (found[expected == 0] == 0).all()
    possible = expected > 0
    z = (found - expected)[possible] / np.sqrt(expected * (1 - expected / num_samples))[possible]
    assert abs(z).max() < 4


@pytest.mark.parametrize("name", BY_EM)
@pytest.mark.parametrize("prior", [(1.0, 1.0), (0.0, 0.0)])
def test_kernel_equals_reference_after_every_iteration(name, prior):
    kind, log = CLICK_MODELS[name], random_log()
    view, priors = pairs_of(log).view(log), dict.fromkeys(CLICK_MODELS[name].axes, prior)
    reference, _ = first_parameters(kind, view, priors)
    compiled, summary = reference, kind.summarise(view)
    for _ in range(12):
        wanted, found = kind.expect(reference, view), kind.expect_compiled(compiled, summary)
        assert found.log_likelihood == pytest.approx(wanted.log_likelihood, rel=1e-12)
        reference, compiled = maximised(wanted, priors), maximised(found, priors)
        assert set(reference) == set(compiled) == set(kind.axes)
        for parameter, values in reference.items():
            np.testing.assert_allclose(compiled[parameter], values, rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", BY_EM)
def test_fits_without_numba_are_the_same(name, monkeypatch):
    log = random_log()
    fast = fit_click_model(name, log, iterations=20)
    monkeypatch.setattr("rankpolicy.clicks.models.shards.HAS_NUMBA", False)
    plain = fit_click_model(name, log, iterations=20)
    for parameter, values in plain.parameters.items():
        np.testing.assert_allclose(fast.parameters[parameter], values, rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", BY_EM)
@pytest.mark.parametrize("prior", [(1.0, 1.0), (2.0, 0.5), None])
def test_em_never_loses(name, prior):
    model = fit_click_model(name, random_log(seed=2), prior=prior, iterations=60, tolerance=0)
    gains = np.diff(model.objectives)
    assert len(gains) > 5
    assert gains.min() > -1e-9
    assert gains[0] > 1e-3


@pytest.mark.parametrize("name", BY_EM)
def test_no_step_away_from_the_maximum_gains(name):
    """What EM ends at is a maximum of the likelihood that the model states."""
    log = random_log(seed=3)
    model = fit_click_model(name, log, prior=None, iterations=3000, tolerance=0)
    best = model.log_likelihood(log)
    generator = np.random.default_rng(0)
    for _ in range(20):
        moved = {
            parameter: np.clip(values + 0.01 * generator.standard_normal(values.shape), 0, 1)
            for parameter, values in model.parameters.items()
        }
        other = type(model)(pairs=model.pairs, parameters=moved, defaults=model.defaults)
        assert other.log_likelihood(log) <= best + 1e-6


def test_collapsed_sessions_change_nothing(name):
    log = random_log(500, num_queries=2, num_items=3)
    small = log.collapsed()
    assert len(small) < len(log)
    assert small.num_sessions == log.num_sessions
    model, from_small = fit_click_model(name, log, **few(name, 15)), fit_click_model(name, small, **few(name, 15))
    for parameter, values in model.parameters.items():
        np.testing.assert_allclose(from_small.parameters[parameter], values, atol=1e-12)
    if name != "cm":
        assert model.log_likelihood(small) == pytest.approx(model.log_likelihood(log))
    np.testing.assert_allclose(model.perplexity(small).by_rank, model.perplexity(log).by_rank)


@pytest.mark.parametrize(("name", "prior"), NAMES_AND_PRIORS)
def test_parameters_are_probabilities_and_relevance_has_a_value_a_pair(name, prior):
    model = fit_click_model(name, random_log(), prior=prior, **few(name, 30))
    for values in model.parameters.values():
        assert ((values >= 0) & (values <= 1)).all()
    assert model.relevance().shape == (len(model.pairs),)
    assert np.isfinite(model.relevance()).all()


def test_names_and_order_of_the_log_do_not_matter(name):
    log = random_log()
    renamed = log_from_lists(
        [f"query {code}" for code in log.queries[::-1]],
        [[f"item {item}" for item in row if item >= 0] for row in log.items[::-1]],
        [row[shown >= 0].tolist() for row, shown in zip(log.clicks[::-1], log.items[::-1], strict=True)],
    )
    one, other = fit_click_model(name, log, **few(name, 15)), fit_click_model(name, renamed, **few(name, 15))
    np.testing.assert_allclose(other.perplexity(renamed).by_rank, one.perplexity(log).by_rank)


def test_what_was_never_seen_has_the_prior_mean(name):
    model = fit_click_model(name, random_log(), prior=(1.0, 3.0))
    log = log_from_lists(["0", "new"], [[f"new {rank}" for rank in range(9)], [0]], [[0] * 9, [0]])
    probabilities = model.click_probabilities(log)
    assert np.isfinite(probabilities[0]).all()
    if "attraction" in model.parameters:
        assert model.pair_values("attraction", "new", [0]) == 0.25
    assert model.user_of("new", ["a", "b"]).attraction.shape == (2,)


def test_save_and_load(name, tmp_path):
    log = random_log()
    model = fit_click_model(name, log)
    model.save(tmp_path / "model.json")
    loaded = rp.load(tmp_path / "model.json")
    assert type(loaded) is type(model)
    np.testing.assert_array_equal(loaded.click_probabilities(log), model.click_probabilities(log))
    np.testing.assert_array_equal(
        loaded.conditional_click_probabilities(log), model.conditional_click_probabilities(log)
    )
    by_name = partial(zip, strict=True)
    wanted = {(model.pairs.query_names[q], model.pairs.item_names[i]): r
              for q, i, r in by_name(model.pairs.queries, model.pairs.items, model.relevance())}  # fmt: skip
    found = {(loaded.pairs.query_names[q], loaded.pairs.item_names[i]): r
             for q, i, r in by_name(loaded.pairs.queries, loaded.pairs.items, loaded.relevance())}  # fmt: skip
    assert found == wanted
    assert loaded.objectives == model.objectives
    assert (
        loaded.to_dict()
        == rp.load(tmp_path / "model.json").to_dict()
        == type(model).from_dict(loaded.to_dict()).to_dict()
    )


def test_counts_serve_where_no_session_is_needed(name):
    kind, log = CLICK_MODELS[name], random_log()
    shown = [(s, p) for s, p in zip(*np.nonzero(log.items >= 0), strict=True)]
    items, clicks = np.full((len(shown), 6), -1, np.int32), np.zeros((len(shown), 6), np.int8)
    for row, (session, position) in enumerate(shown):
        items[row, position] = log.items[session, position]
        clicks[row, position] = log.clicks[session, position]
    from dataclasses import replace

    queries = log.queries[[session for session, _ in shown]]
    single = replace(
        log, queries=queries, items=items, clicks=clicks, counts=np.ones(len(shown), np.int64), has_sessions=False
    )
    if kind.needs_sessions:
        with pytest.raises(RankPolicyError, match="needs whole sessions"):
            fit_click_model(name, single)
        with pytest.raises(RankPolicyError, match="needs whole sessions"):
            fit_click_model(name, log).perplexity(single)
        return
    model, whole = (
        fit_click_model(name, single, **few(name, 30)),
        fit_click_model(name, log, **few(name, 30)),
    )
    for parameter, values in whole.parameters.items():
        np.testing.assert_allclose(model.parameters[parameter], values, atol=1e-12)
    np.testing.assert_allclose(model.perplexity(single).by_rank, whole.perplexity(log).by_rank)


@pytest.mark.parametrize("name", CLOSED)
@pytest.mark.parametrize("setting", [{"iterations": 5}, {"tolerance": 1e-3}])
def test_a_model_in_closed_form_refuses_settings_of_em(name, setting):
    with pytest.raises(RankPolicyError, match=r"would not be read.*fitted by EM"):
        fit_click_model(name, random_log(20), **setting)
    with pytest.raises(RankPolicyError, match=r"would not be read.*fitted by EM"):
        compare_click_models(CLOSED, random_log(20), random_log(20), **setting)


def test_an_empirical_prior_is_refused_where_there_is_no_attraction(name):
    if "attraction" in CLICK_MODELS[name].axes:
        assert fit_click_model(name, random_log(), prior="empirical").priors["attraction"] != (1.0, 1.0)
        return
    with pytest.raises(RankPolicyError, match="would not be read: it is the prior of attractions"):
        fit_click_model(name, random_log(20), prior="empirical")


def test_a_comparison_gives_every_model_the_settings_it_reads():
    log = random_log()
    found = compare_click_models(list(CLICK_MODELS), log, log, prior="empirical", iterations=2, tolerance=0).models
    for name, measured in found.items():
        assert len(measured.model.objectives) == (4 if name in BY_EM else 0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"iterations": -1}, "iterations must be at least 0; got -1"),
        ({"iterations": 1.5}, "iterations must be a whole number"),
        ({"tolerance": -1.0}, "tolerance must be at least 0"),
        ({"prior": (0.0, 1.0)}, "prior must be above 0"),
        ({"prior": "flat"}, "Unknown prior 'flat'"),
    ],
)
def test_settings_are_checked_when_made(name, settings, message):
    with pytest.raises(RankPolicyError, match=message):
        ClickFitSettings(model=name, **settings)


def test_a_model_says_what_it_is(name):
    kind = CLICK_MODELS[name]
    assert kind.name == name
    assert kind.title
    assert (kind.__doc__ or "").strip()


def test_its_walk_is_the_same_in_plain_python(name):
    """Compiled or not, the functions of the walk give the same numbers."""
    from rankpolicy.kernels.clicks import walk

    model, log = fit_click_model(name, random_log()), every_click_vector(4)
    view = model.pairs.view(log)
    walks = model.walks(model._padded(4), view.pairs)
    plain, reached = np.empty(4), np.empty(walks.examination.shape[1])
    for row, wanted in enumerate(model.conditional_click_probabilities(log)):
        walk.conditional_probabilities.py_func(walk.row_of.py_func(walks, row), log.clicks[row], plain)
        np.testing.assert_allclose(plain, wanted, atol=1e-15)
        walk.click_probabilities.py_func(walk.row_of.py_func(walks, row), reached, plain)
        np.testing.assert_allclose(plain, model.click_probabilities(log)[row], atol=1e-15)
