"""Short texts everywhere, and what notebooks show."""

from html.parser import HTMLParser

import numpy as np
import pytest
import torch

import rankpolicy as rp
from rankpolicy.bandits import BANDITS, QueryBandit
from rankpolicy.clicks import CLICK_MODELS, log_from_lists
from rankpolicy.display import html_curve, html_table, short
from rankpolicy.policies import PlackettLuce
from rankpolicy.rankers import RANKERS

DATA = rp.make_web_search(20, random_state=1)
GENERATOR = np.random.default_rng(0)
NUM_SESSIONS = 500
LOG = log_from_lists(
    [f"query {number % 40}" for number in range(NUM_SESSIONS)],
    [[f"item {item}" for item in GENERATOR.permutation(30)[:10]] for _ in range(NUM_SESSIONS)],
    GENERATOR.integers(0, 2, (NUM_SESSIONS, 10)).tolist(),
)


class Balanced(HTMLParser):
    """Refuses tags that are not closed in order."""

    def __init__(self):
        super().__init__()
        self.open, self.seen = [], []

    def handle_starttag(self, tag, attributes):
        self.seen.append(tag)
        if tag not in ("br",):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def html_of(value):
    text = value._repr_html_()
    parser = Balanced()
    parser.feed(text)
    assert parser.open == []
    assert len(text) < 20_000
    return text


def test_a_click_log_prints_one_line():
    assert repr(LOG) == f"ClickLog(sessions=500, queries=40, items=30, positions=10, clicks={LOG.num_clicks})"
    shown = html_of(LOG)
    assert "click-through" in shown
    assert "<td" in shown


def test_everything_a_user_holds_prints_a_short_line():
    bias = rp.estimate_position_bias(LOG, method="em")
    long = PlackettLuce(torch.zeros(200, 100), torch.ones(200, 100, dtype=torch.bool))
    held = [DATA, LOG, bias, long, DATA.padding(), rp.evaluate(DATA.labels, DATA)]
    held += [rp.fit_click_model(name, LOG) for name in CLICK_MODELS if name in ("pbm", "dbn", "ccm", "gctr")]
    held += [BANDITS[name](num_items=300, cutoff=5) for name in BANDITS if name not in ("index", "bubble-rank")]
    held += [BANDITS["cascade-lin-ucb"](num_items=300, cutoff=5, features=np.ones((300, 40)))]
    held += [QueryBandit(bandit="dcm-ts", cutoff=3)]
    for value in held:
        text = repr(value)
        assert len(text) < 1_000, text
        assert "\n" not in text
        assert text.startswith(type(value).__name__)
    assert repr(long) == "PlackettLuce(scores=<float32 200x100>, mask=<bool 200x100>)"


@pytest.mark.parametrize("name", RANKERS)
def test_rankers_show_changed_settings_and_whether_they_are_fitted(name):
    ranker = RANKERS[name](random_state=7)
    shown = html_of(ranker)
    assert f"{type(ranker).__name__}, not fitted" in shown
    assert "random_state" in shown
    assert "default settings" in html_of(RANKERS[name]())


def test_a_fitted_ranker_shows_its_learning_curve(tmp_path):
    ranker = rp.ListNet(epochs=3).fit(DATA, valid=DATA)
    shown = html_of(ranker)
    assert "ListNet, fitted" in shown
    assert shown.count("<polyline") == 2
    assert "valid_0 ndcg@10" in shown
    ranker.save(tmp_path / "model.rp")
    assert html_of(rp.load(tmp_path / "model.rp")) == shown
    assert "best iteration 1" in html_of(rp.RankSVM().fit(DATA))


def test_datasets_tables_and_bandits_in_notebooks():
    assert "median" in html_of(DATA)
    table = rp.evaluate(DATA.labels, DATA, ["ndcg@10", "map"])
    shown = html_of(table)
    assert "95% interval" in shown
    assert "conventions: " in shown
    bandit = BANDITS["dcm-ts"](num_items=5, cutoff=2)
    bandit.learn(bandit.rank(), [0, 1])
    assert "1 lists" in html_of(bandit)
    assert "dcm-ts" in html_of(QueryBandit(bandit="dcm-ts", cutoff=3))


def test_texts_of_users_are_escaped():
    evil = "<script>alert(1)</script>"
    data = rp.from_arrays([[1.0], [2.0]], [0, 1], group=[2])
    table = rp.evaluate([1.0, 2.0], data, ["ndcg"])
    assert "<script" not in html_of(table)
    assert "<script" not in html_table([(evil, evil)], header=(evil,))
    assert "<script" not in html_curve([1.0, 2.0], label=evil)
    assert "<script" not in html_curve([1.0], label=evil)
    assert "<script" not in rp.ListNet(valid_metric="ndcg@10", device=evil)._repr_html_()


def test_a_pipeline_shows_rankers_in_notebooks():
    pipeline = pytest.importorskip("sklearn.pipeline")
    preprocessing = pytest.importorskip("sklearn.preprocessing")
    shown = pipeline.make_pipeline(preprocessing.StandardScaler(), rp.ListNet(epochs=3))._repr_html_()
    assert "ListNet" in shown


def test_curves_of_odd_values():
    assert html_curve([], label="x") == ""
    assert html_curve([float("nan")], label="x") == ""
    assert "1.0000" in html_curve([float("nan"), 1.0], label="x")
    assert "nan" not in html_curve([1.0, float("nan"), 2.0], label="x")
    assert "polyline" in html_curve([1.0, 1.0], label="x")


def test_short_values():
    assert short(np.arange(3)) == "[0, 1, 2]"
    assert short(np.zeros((3, 4), np.float32)) == "<float32 3x4>"
    assert short(torch.zeros(500)) == "<float32 500>"
    assert short((1,)) == "(1,)"
    assert short(dict.fromkeys(range(100))) == "<100 entries>"
    assert len(short(object)) < 300
