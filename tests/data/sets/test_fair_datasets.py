"""Datasets with groups. German Credit itself is not part of the project: RANKPOLICY_DATA says where it is."""

import os
from pathlib import Path

import numpy as np
import pytest

from rankpolicy import RankPolicyError
from rankpolicy.data.sets.fair_synthetic import make_fair_synthetic
from rankpolicy.data.sets.german_credit import read_german_credit, read_people

PERSON = "A11 6 A34 A43 1169 A65 A75 4 A93 A101 4 A121 67 A143 A152 2 A173 1 A192 A201 1"


def test_synthetic_set_is_that_of_the_paper():
    data = make_fair_synthetic(2000, 10)
    assert (data.num_queries, data.num_items, data.num_features) == (2000, 20_000, 2)
    is_minority = data.groups == 1
    assert abs(is_minority.mean() - 0.2) < 4 * np.sqrt(0.2 * 0.8 / 20_000)
    np.testing.assert_allclose(data.labels[~is_minority], np.clip(data.features[~is_minority].sum(1), 0, 5))
    assert not data.features[is_minority, 1].any()
    # What x2 was before it was zeroed is still in the label: U(0, 3), where nothing was clipped.
    hidden = (data.labels - data.features[:, 0])[is_minority & (data.features[:, 0] < 2)]
    assert hidden.min() >= 0
    assert abs(hidden.mean() - 1.5) < 4 * np.sqrt(0.75 / len(hidden))
    assert data.labels.max() == 5


def test_synthetic_draws_are_repeatable_and_differ_by_random_state():
    first, again, other = (make_fair_synthetic(3, 4, random_state=s) for s in (0, 0, 1))
    assert np.array_equal(first.features, again.features)
    assert not np.array_equal(first.features, other.features)
    assert set(make_fair_synthetic(5, 5, minority_share=1.0).groups) == {1}
    with pytest.raises(RankPolicyError, match="minority_share must be between 0 and 1"):
        make_fair_synthetic(minority_share=20)


def write(path, lines):
    file = path / "german.data"
    file.write_text("\n".join(lines))
    return file


def test_a_person(tmp_path):
    female = PERSON.replace("A93", "A92")[:-1] + "2"
    people = read_people(write(tmp_path, [PERSON, "", female]))
    assert people.labels.tolist() == [1, 0]
    assert people.groups.tolist() == [0, 1]
    named = dict(zip(people.feature_names, people.features[0], strict=True))
    assert (named["duration"], named["amount"], named["age"]) == (6, 1169, 67)
    assert named["purpose=A43"] == 1
    assert people.features[0, ~people.is_number].sum() == 13


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (PERSON.replace(" A201", ""), "line 2: expected 20 attributes and a class, 21 fields; got 20"),
        (PERSON.replace("A34", "A39"), "line 2: credit_history must be one of A30.* got 'A39'"),
        (PERSON.replace("1169", "x"), "line 2: amount must be a whole number; got 'x'"),
        (PERSON[:-1] + "3", "line 2: the class must be 1 .creditworthy. or 2"),
    ],
)
def test_malformed_lines_are_named(tmp_path, line, message):
    with pytest.raises(RankPolicyError, match=message):
        read_people(write(tmp_path, [PERSON, line]))


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(RankPolicyError, match=r"must be the text file german\.data"):
        read_people(tmp_path / "missing")
    with pytest.raises(RankPolicyError, match="it is empty"):
        read_people(write(tmp_path, []))
    with pytest.raises(RankPolicyError, match="draw must be"):
        read_german_credit(tmp_path, draw="ratio")
    with pytest.raises(RankPolicyError, match="Lower num_items"):
        read_german_credit(write(tmp_path, [PERSON] * 20))


FILE = Path(os.environ.get("RANKPOLICY_DATA", "nowhere")) / "german_credit" / "german.data"
needs_data = pytest.mark.skipif(
    not FILE.is_file(), reason="RANKPOLICY_DATA does not name the folder of the public datasets"
)


@needs_data
def test_german_credit_has_the_published_counts():
    people = read_people(FILE)
    assert len(people.labels) == 1000
    assert people.labels.sum() == 700
    assert people.groups.sum() == 310
    assert people.labels[people.groups == 1].sum() == 201


@needs_data
@pytest.mark.parametrize("draw", ["counts", "weights"])
def test_german_credit_queries(draw):
    train, test = read_german_credit(FILE, draw=draw)
    assert (train.num_queries, test.num_queries) == (500, 100)
    assert set(train.sizes) == set(test.sizes) == {10}
    assert not set(train.item_ids) & set(test.item_ids)
    assert all(len(set(items)) == 10 for items in train.item_ids.reshape(-1, 10))
    relevant = train.labels.reshape(-1, 10).sum(1)
    if draw == "counts":
        assert set(relevant) == {2}
    else:
        assert 3.3 < relevant.mean() < 4.1
    again, _ = read_german_credit(FILE, draw=draw)
    assert np.array_equal(train.features, again.features)


@needs_data
def test_german_credit_is_scaled_by_training_people():
    train, test = read_german_credit(FILE, num_train=2000, draw="weights")
    column = train.feature_names.index("age")
    assert abs(train.features[:, column].mean()) < 0.2
    assert 0.7 < train.features[:, column].std() < 1.3
    assert set(np.unique(test.features[:, train.feature_names.index("status_sex=A92")])) == {0, 1}
