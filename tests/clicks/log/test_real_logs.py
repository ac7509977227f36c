"""Public click logs, which are not part of the project: RANKPOLICY_DATA says where they are."""

import os
from pathlib import Path

import numpy as np
import pytest

from rankpolicy.clicks import CLICK_MODELS, compare_click_models, fit_click_model, read_click_log

DATA = Path(os.environ.get("RANKPOLICY_DATA", "nowhere"))

pytestmark = pytest.mark.skipif(
    not DATA.is_dir(), reason="RANKPOLICY_DATA does not name the folder of the public datasets"
)


@pytest.fixture(scope="module")
def yandex():
    return read_click_log(DATA / "yandex_relpred_sample" / "train.yandexlog.tsv.gz")


def test_yandex_sample(yandex):
    assert (yandex.num_sessions, len(yandex.query_names), yandex.num_positions) == (35064, 20, 10)
    assert yandex.num_dropped_clicks == 417
    assert yandex.num_clicks + yandex.num_dropped_clicks + yandex.num_repeated_clicks == 50_321
    assert yandex.query_names[0] == "98435_1"
    assert yandex.clicks[0].tolist() == [1, 1, 0, 1, 0, 0, 0, 0, 0, 0]


def test_held_out_clicks_rank_the_models_plausibly(yandex):
    """Models that know items beat those that do not; UBM and DBN beat CM and DCM."""
    comparison = compare_click_models(list(CLICK_MODELS), *yandex.split(0.25))
    perplexity = {name: measured.perplexity.overall for name, measured in comparison.models.items()}
    given_clicks = {name: measured.conditional_perplexity.overall for name, measured in comparison.models.items()}
    for better in ("ubm", "dbn"):
        for worse in ("cm", "dcm", "dctr", "rctr", "gctr"):
            assert perplexity[better] < perplexity[worse]
            assert given_clicks[better] < given_clicks[worse]
    assert given_clicks["ubm"] < given_clicks["pbm"]
    assert comparison.models["cm"].num_impossible > 0


def test_yandex_counts():
    log = read_click_log(DATA / "yandex_60_counts" / "query_url_position_counts.csv.gz")
    assert (len(log.query_names), log.num_positions) == (60, 10)
    assert log.num_sessions == pytest.approx(24.7e6, rel=0.01)
    assert log.num_clicks + log.num_repeated_clicks == pytest.approx(2.45e6, rel=0.01)
    examination = fit_click_model("pbm", log).parameters["examination"]
    assert (np.diff(examination[:7]) < 0).all()
