"""What every ranker promises, over the one dict that lists them."""

import json
import zipfile
from dataclasses import replace

import numpy as np
import pytest
import torch

import rankpolicy as rp
from rankpolicy.declarations.setting_texts import describe_settings
from rankpolicy.rankers import RANKERS
from rankpolicy.rankers.networks.network import NetworkRanker

WEB = rp.make_web_search(60, random_state=1)
DATA = replace(WEB, groups_by_query=np.arange(WEB.num_items) % 2)
TRAIN, VALID = DATA[:40], DATA[40:]
QUICK = {
    "auto": {
        "methods": ("boosted-regression", "pg-rank"),
        "method_settings": {"boosted-regression": {"num_trees": 5}, "pg-rank": {"epochs": 2, "num_networks": 1}},
        "num_folds": 2,
    },
    "fair-pg-rank": {"epochs": 3, "fairness": "individual"},
    "pg-rank": {"epochs": 3, "num_networks": 2},
    "matching-cross": {"epochs": 3, "model": "mlp"},  # its own model reads texts
    "lambdamart": {"num_trees": 5},
    "boosted-policy": {"num_trees": 5},
    "boosted-regression": {"num_trees": 5},
    "adarank": {"rounds": 10},
    "coordinate-ascent": {"restarts": 2, "max_passes": 2},
    "fair-exposure": {
        "strength": 0.1,
        "num_samples": 20,
        "num_folds": 2,
        "relevance_settings": {"boosted-regression": {"num_trees": 5}},
    },
    "fair-lp": {"strength": 0.1},
    "equity-of-attention": {"num_rankings": 5, "quality": 0.5},
}
ALL = pytest.mark.parametrize("name", RANKERS)
# Most rankers score an item by itself; these need its query and its group.
RANKS_BY_GROUPS = ("fair-lp", "fair-exposure", "fa-ir", "equity-of-attention")


def new_ranker(name, **settings):
    quick = {"epochs": 3} if "epochs" in RANKERS[name].setting_names() else {}
    return RANKERS[name](**QUICK.get(name, quick) | settings)


def beside_rows(name, rows=slice(None)):
    """What must come with these rows of VALID.features so that they can be scored."""
    return {"qid": VALID.query_of_item[rows], "protected": VALID.groups[rows]} if name in RANKS_BY_GROUPS else {}


@pytest.fixture(scope="module")
def fitted():
    return {name: new_ranker(name).fit(TRAIN, valid=VALID) for name in RANKERS}


@ALL
def test_arrays_in_any_form_give_the_same_ranker(name):
    expected = new_ranker(name).fit(TRAIN, valid=VALID).predict(VALID)
    by_group = new_ranker(name).fit(
        TRAIN.features,
        TRAIN.labels,
        group=TRAIN.sizes,
        protected=TRAIN.groups,
        eval_set=[(VALID.features, VALID.labels)],
        eval_group=[VALID.sizes],
    )
    by_qid = new_ranker(name).fit(
        TRAIN.features,
        TRAIN.labels,
        qid=TRAIN.query_of_item,
        protected=TRAIN.groups,
        eval_set=[(VALID.features, VALID.labels)],
        eval_qid=[VALID.query_of_item],
    )
    np.testing.assert_array_equal(by_group.predict(VALID.features, **beside_rows(name)), expected)
    np.testing.assert_array_equal(by_qid.predict(VALID), expected)


@ALL
def test_predict_keeps_the_order_of_rows_and_rank_sorts_each_query(name, fitted):
    ranker = fitted[name]
    shuffled = np.random.default_rng(0).permutation(VALID.num_items)
    qid = VALID.query_of_item[shuffled]
    scores = ranker.predict(VALID.features[shuffled], **beside_rows(name, shuffled))
    np.testing.assert_allclose(scores, ranker.predict(VALID)[shuffled], rtol=1e-5)
    rankings = ranker.rank(VALID.features[shuffled], qid=qid, protected=VALID.groups[shuffled])
    assert len(rankings) == VALID.num_queries
    for rows in rankings:
        assert len(set(qid[rows])) == 1
        assert (np.diff(scores[rows]) <= 0).all()


@ALL
def test_samples_are_rankings_of_each_query_and_follow_the_seed(name, fitted):
    samples = fitted[name].sample(VALID, num_samples=3, random_state=5)
    for query, rows in enumerate(samples):
        assert rows.shape == (3, VALID.sizes[query])
        assert (np.sort(rows) == np.arange(VALID.offsets[query], VALID.offsets[query + 1])).all()
    again = fitted[name].sample(VALID, num_samples=3, random_state=5)
    assert all(np.array_equal(a, b) for a, b in zip(samples, again, strict=True))


@pytest.mark.parametrize("name", [name for name in RANKERS if name not in RANKS_BY_GROUPS])
def test_the_policy_prefers_what_rank_puts_first(name, fitted):
    policy = fitted[name].policy(VALID[:1])
    np.testing.assert_array_equal(policy.mode(), fitted[name].rank(VALID[:1])[0][None])


@ALL
def test_same_seed_same_result(name):
    before = torch.get_rng_state()
    first, second = (new_ranker(name, random_state=3).fit(TRAIN).predict(VALID) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert torch.equal(torch.get_rng_state(), before)


@ALL
def test_save_and_load_predict_the_same(name, fitted, tmp_path):
    path = tmp_path / "model.rp"
    fitted[name].save(path)
    loaded = rp.load(path)
    np.testing.assert_array_equal(loaded.predict(VALID), fitted[name].predict(VALID))
    assert loaded.to_dict() == fitted[name].to_dict()
    assert (loaded.best_iteration_, loaded.best_score_) == (fitted[name].best_iteration_, fitted[name].best_score_)
    assert loaded.evals_result_ == fitted[name].evals_result_
    assert [file.name for file in tmp_path.iterdir()] == ["model.rp"]


@ALL
def test_a_damaged_model_is_refused(name, fitted, tmp_path):
    path = tmp_path / "model.rp"
    fitted[name].save(path)
    with zipfile.ZipFile(path) as archive:
        files = {file: archive.read(file) for file in archive.namelist()}
    state = next(file for file in files if file != "manifest.json")
    with zipfile.ZipFile(path, "w") as archive:
        for file, content in files.items():
            archive.writestr(file, content[:-1] + bytes([content[-1] ^ 1]) if file == state else content)
    with pytest.raises(rp.RankPolicyError, match=f"damaged: {state} does not match its sha256"):
        rp.load(path)


@ALL
def test_after_fit_there_is_a_record(name, fitted):
    ranker = fitted[name]
    ((metric, curve),) = ranker.evals_result_["valid_0"].items()
    assert ranker.best_score_ == max(curve)
    assert ranker.best_iteration_ >= 1
    if metric == "ndcg@10":  # a ranker with an objective of its own is validated by that
        assert ranker.best_score_ == curve[ranker.best_iteration_ - 1]
        assert ranker.best_score_ == pytest.approx(rp.evaluate(ranker, VALID, ["ndcg@10"]).means["ndcg@10"])


@ALL
def test_settings_follow_scikit_learns_protocol(name):
    sklearn = pytest.importorskip("sklearn.base")
    ranker = new_ranker(name, random_state=9)
    copy = sklearn.clone(ranker)
    assert copy is not ranker
    assert copy.get_params() == ranker.get_params()
    assert copy.set_params(random_state=1).random_state == 1
    assert "random_state=9" in repr(ranker)
    calls = [lambda: ranker.set_params(depth=3)]
    if "Parameters" in RANKERS[name].__doc__:
        calls.append(lambda: RANKERS[name](depth=3))
    for refused in calls:
        with pytest.raises(rp.RankPolicyError, match=r"has no setting 'depth'. Known:"):
            refused()


@ALL
def test_wrong_input_is_named(name, fitted):
    X, y, sizes = TRAIN.features, TRAIN.labels, TRAIN.sizes
    wrong = [
        (lambda: new_ranker(name).predict(X), "not fitted yet"),
        (lambda: new_ranker(name).save("never.rp"), "not fitted yet"),
        (lambda: new_ranker(name).fit(X, group=sizes), "fit needs labels"),
        (lambda: new_ranker(name).fit(X, y), "exactly one of qid .* and group"),
        (lambda: new_ranker(name).fit(X, y[:-1], group=sizes), "labels must have one value per row"),
        (lambda: new_ranker(name).fit(X, y - 1, group=sizes), "labels must be grades"),
        (lambda: new_ranker(name).fit(X * np.inf, y, group=sizes), "features must be finite"),
        (lambda: new_ranker(name).fit(X[:0], y[:0], group=[]), "at least one query"),
        (lambda: new_ranker(name).fit(TRAIN, y), "pass no y, qid or group"),
        (lambda: new_ranker(name).fit(TRAIN, valid=X), "valid must be a RankingDataset"),
        (lambda: new_ranker(name).fit(TRAIN, eval_set=[(X, y)]), "one validation set with its queries"),
        (lambda: new_ranker(name).fit(TRAIN, valid=VALID, eval_set=[(X, y)]), "validation data once"),
        (lambda: new_ranker(name).fit(TRAIN, resume=True), "resume=True needs checkpoint="),
        (lambda: new_ranker(name).fit(X[:, 1:], y, group=sizes, valid=VALID), "validation data must have the"),
        (lambda: fitted[name].predict(X[:, 1:], group=sizes), "features of the training data; it has"),
        (lambda: rp.load("missing.rp"), "no model file at missing.rp"),
    ]
    for call, message in wrong:
        with pytest.raises(rp.RankPolicyError, match=message):
            call()


def test_a_model_of_another_format_or_settings_is_refused(fitted, tmp_path):
    path = tmp_path / "model.rp"
    fitted["listnet"].save(path)
    with zipfile.ZipFile(path) as archive:
        files = {file: archive.read(file) for file in archive.namelist()}
    for change, message in (
        ({"format": 99}, "has model format 99"),
        ({"ranker": "oracle"}, "holds a 'oracle' ranker"),
        ({"settings": {"depth": 3}}, "settings this version does not know: depth"),
    ):
        manifest = json.loads(files["manifest.json"]) | change
        with zipfile.ZipFile(path, "w") as archive:
            for file, content in (files | {"manifest.json": json.dumps(manifest).encode()}).items():
                archive.writestr(file, content)
        with pytest.raises(rp.RankPolicyError, match=message):
            rp.load(path)
    path.write_text("no zip")
    with pytest.raises(rp.RankPolicyError, match="is not a rankpolicy model"):
        rp.load(path)


def test_saving_where_no_folder_is_leaves_nothing(fitted, tmp_path):
    with pytest.raises(rp.RankPolicyError, match="must be in a directory that exists"):
        fitted["listnet"].save(tmp_path / "nowhere" / "model.rp")


@ALL
def test_exposure_is_exact_and_keeps_the_order_of_rows(name, fitted):
    ranker = fitted[name]
    exposure = ranker.exposure(VALID)
    for query in range(3):
        rows = slice(VALID.offsets[query], VALID.offsets[query + 1])
        weights = 1 / np.log2(np.arange(2, VALID.sizes[query] + 2))
        assert exposure[rows].sum() == pytest.approx(weights.sum())
        assert (np.diff(exposure[ranker.rank(VALID)[query]]) <= 1e-9).all()
    shuffled = np.random.default_rng(0).permutation(VALID.num_items)
    given = ranker.exposure(
        VALID.features[shuffled], qid=VALID.query_of_item[shuffled], protected=VALID.groups[shuffled]
    )
    np.testing.assert_allclose(given, exposure[shuffled], rtol=1e-4)


NETWORKS = [name for name in RANKERS if issubclass(RANKERS[name], NetworkRanker)]
# A setting that was changed although nothing reads it, and why it is not read.
UNREAD = {
    "pg-rank": [
        ({"num_samples": 4}, "num_samples", "rankings are drawn"),
        ({"reward": "ap", "control": "mean"}, "control", 'estimator is "reinforce"'),
        ({"estimator": "exact", "num_samples": 4}, "num_samples", "rankings are drawn"),
    ],
    "bandit-rank": [
        ({"gamma": 1.0, "loss": "softmax"}, "loss", "gamma is below 1"),
    ],
    "fair-pg-rank": [
        ({"max_disparity": 0.1, "strength": 2.0}, "strength", "max_disparity is None"),
        ({"num_samples": 4}, "num_samples", 'estimator is "reinforce"'),
        ({"learning_rate": 0.1}, "learning_rate", "training goes in batches"),
        ({"batch_queries": 1}, "batch_queries", "training goes in batches"),
        ({"device": "cuda"}, "device", "training goes in batches"),
        ({"model": "mlp", "max_disparity": 0.1, "patience": 3}, "patience", "max_disparity is None"),
    ],
    "regression": [
        ({"model": "linear", "epochs": 3}, "epochs", "the model is not linear"),
        ({"model": "linear", "num_networks": 3}, "num_networks", "the model is not linear"),
    ],
}


@pytest.mark.parametrize("name", NETWORKS)
def test_a_changed_setting_that_nothing_reads_is_refused(name):
    unread = list(UNREAD.get(name, []))
    unread.append(({"model": "mcan", "scaling": "none"}, "scaling", "the model reads features"))
    for settings, setting, condition in unread:
        message = f"{setting}=.* would not be read: it is read only when {condition}"
        with pytest.raises(rp.RankPolicyError, match=message):
            RANKERS[name](**settings)
        with pytest.raises(rp.RankPolicyError, match=message):
            RANKERS[name]().set_params(**settings)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_setting_of_a_model_is_sent_there(name):
    belongs = r"it belongs to the model: model=rp\.models\.MCAN\(compression=\.\.\.\)"
    message = rf"{RANKERS[name].__name__} has no setting 'compression'; {belongs}"
    for refused in (
        lambda: RANKERS[name](compression="nonsense", encoder="/nope"),
        lambda: RANKERS[name]().set_params(compression="sum"),
    ):
        with pytest.raises(rp.RankPolicyError, match=message):
            refused()


@pytest.mark.parametrize("name", RANKERS)
def test_a_setting_of_another_ranker_is_sent_there(name):
    for other in RANKERS:
        for setting in set(RANKERS[other].setting_names()) - set(RANKERS[name].setting_names()):
            message = rf"has no setting '{setting}'; it (is a setting of .*{RANKERS[other].__name__}|belongs to)"
            with pytest.raises(rp.RankPolicyError, match=message):
                RANKERS[name](**{setting: 1})


@pytest.mark.parametrize("name", NETWORKS)
def test_a_class_of_models_is_not_a_model(name):
    with pytest.raises(rp.RankPolicyError, match=r"model must be a value, with parentheses: rp\.models\.MLP\(\)"):
        RANKERS[name](model=rp.models.MLP)


def test_an_estimator_that_does_not_work_for_the_reward_is_refused_when_the_ranker_is_made():
    for estimator, reward in (("exact", "ap"), ("pl_rank", "err"), ("gumbel", lambda rankings, labels, mask: labels)):
        with pytest.raises(rp.RankPolicyError, match=f"estimator '{estimator}' does not work for the reward"):
            rp.PGRank(estimator=estimator, reward=reward)


@pytest.mark.parametrize("name", NETWORKS)
def test_settings_are_few_explained_and_checked_when_the_ranker_is_made(name):
    described = describe_settings(RANKERS[name])
    assert len(described) <= 19  # a bound against growth unseen: betas of the optimizer were the nineteenth
    assert all(len(each.help) > 15 for each in described)
    with pytest.raises(rp.RankPolicyError, match="num_networks must be at least 1; got 0"):
        RANKERS[name](num_networks=0)
    ranker = RANKERS[name]()
    with pytest.raises(rp.RankPolicyError, match="weight_decay must be at least 0"):
        ranker.set_params(weight_decay=-1.0, num_networks=2)
    assert ranker.num_networks == RANKERS[name]().num_networks
    ranker.weight_decay = -1.0  # behind the ranker's back: fit looks again
    with pytest.raises(rp.RankPolicyError, match="weight_decay must be at least 0"):
        ranker.fit(TRAIN)


@pytest.mark.parametrize("name", NETWORKS)
def test_scikit_learns_searches_reach_the_settings_of_the_model(name):
    from sklearn.base import clone
    from sklearn.model_selection import ParameterGrid

    ranker = RANKERS[name](model="mlp")
    assert ranker.get_params()["model__hidden"] == (64, 64)
    for settings in ParameterGrid({"model__hidden": [(8,), (4, 4)], "model__dropout": [0.0, 0.5]}):
        copy = clone(ranker).set_params(**settings)
        assert copy.model == rp.models.MLP(hidden=settings["model__hidden"], dropout=settings["model__dropout"])
        assert clone(copy).get_params() == copy.get_params()
        assert f"model={copy.model!r}" in repr(copy)
    assert ranker.model == "mlp"
    assert ranker.set_params(model="highway", model__hidden=(9,)).model == rp.models.Highway(hidden=(9,))
    with pytest.raises(
        rp.RankPolicyError, match=r"MLP has no setting 'hiden'\. Did you mean 'hidden'\? Known: hidden, dropout"
    ):
        RANKERS[name](model="mlp").set_params(model__hiden=(4,))


@ALL
def test_to_dict_holds_settings_and_records_as_json(name, fitted):
    document = fitted[name].to_dict()
    assert json.loads(json.dumps(document)) == document
    assert document["ranker"] == name
    assert set(document["settings"]) == set(fitted[name].setting_names())
    assert document["fitted"]["best_iteration_"] == fitted[name].best_iteration_
    assert new_ranker(name).to_dict()["fitted"] == {}
