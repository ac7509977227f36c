"""Side columns as numbers and codes: what training fixes, and what new data may bring."""

import json
import warnings

import numpy as np
import pytest

from rankpolicy.data.click_table.list_columns import SideColumns
from rankpolicy.data.click_table.side_encoding import SideEncoding
from rankpolicy.types import RankPolicyError

NAN = np.nan


def columns(numbers=None, **categories):
    return SideColumns(
        numbers={name: np.array(values, np.float32) for name, values in (numbers or {}).items()},
        categories={name: np.array(values, dtype=object) for name, values in categories.items()},
    )


TRAIN = columns({"age": [1.0, 3.0, NAN, 5.0], "price": [2.0, 4.0, 4.0, 6.0]}, kind=["a", "b", "", "38"])


def fitted(side=TRAIN, users=None, min_users=1):
    return SideEncoding.fit(side, users, min_users=min_users)


def test_numbers_are_standardised_and_marked_missing_where_training_had_missing_ones():
    side = fitted().tensors(columns({"age": [NAN, 3.0], "price": [NAN, 4.0 + 2**0.5]}, kind=["b", "b"]), 2)
    # age: known 1, 3, 5 of mean 3; price: mean 4, spread sqrt(2), never missing in training, so no mark.
    np.testing.assert_allclose(side.numbers.numpy(), [[0, 1, 0], [0, 0, 1]], atol=1e-6)


def test_codes_are_0_missing_1_unknown_then_the_known_ones():
    encoding = fitted()
    assert encoding.categories[0].known == ("38", "a", "b")
    new = columns({"age": [1] * 5, "price": [1] * 5}, kind=["", "new", "38", "a", "b"])
    assert encoding.tensors(new, 5).categories[:, 0].tolist() == [0, 1, 2, 3, 4]


def test_a_category_that_few_users_saw_is_unknown_and_not_saved():
    side = columns(kind=["a", "a", "secret", "a", ""])
    encoding = fitted(side, np.array(["u", "v", "w", "u", "w"]), min_users=2)
    assert encoding.tensors(side, 5).categories[:, 0].tolist() == [2, 2, 1, 2, 0]
    assert "secret" not in json.dumps(encoding.document())


def test_columns_that_tell_nothing_are_left_out_and_named():
    side = columns(
        {"empty": [NAN] * 3, "same": [0.1] * 3, "partly": [7, NAN, 7], "age": [1, 2, 3]},
        none=["", "", ""],
        one=["x", "x", "x"],
        rare=["x", "y", "z"],
    )
    with pytest.warns(UserWarning, match="without information") as caught:
        encoding = fitted(side, np.array(["u", "v", "w"]), min_users=2)
    message = str(caught[0].message)
    for text in (
        "empty (no value is known)",
        "same (always the same)",
        "none (no value is known)",
        "one (always the same)",
    ):
        assert text in message
    assert "rare (no value is seen by 2 users)" in message
    assert [column.name for column in encoding.numbers] == ["partly", "age"]
    assert encoding.categories == ()
    # Of a column that is constant where known only the mark is left.
    assert encoding.tensors(side, 3).numbers[:, 0].tolist() == [0, 1, 0]
    # That they come again, or do not, is no news.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoding.tensors(columns({"partly": [7.0], "age": [1.0]}), 1)


def test_absent_columns_are_missing_and_named_once_beside_unknown_ones():
    encoding = fitted()
    with pytest.warns(
        UserWarning, match=r"no side column price, kind, .* taken as missing.*did not have are not read: Price"
    ) as caught:
        side = encoding.tensors(columns({"age": [3.0], "Price": [1.0]}), 1)
    assert len(caught) == 1
    assert side.numbers.tolist() == [[0, 0, 0]]
    assert side.categories.tolist() == [[0]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        encoding.tensors(columns({"age": [3.0]}), 1)
        # Columns that training did not have are no reason for a word where none is missing.
        encoding.tensors(columns({"age": [3.0], "price": [1.0], "extra": [1.0]}, kind=["a"]), 1)


def test_no_side_columns_at_all():
    with pytest.warns(UserWarning, match="no side column age, price, kind"):
        side = fitted().tensors(None, 2)
    assert side.numbers.tolist() == [[0, 1, 0]] * 2
    nothing = fitted(None).tensors(columns({"age": [1.0]}), 1)
    assert nothing.numbers.shape == nothing.categories.shape == (1, 0)


def test_texts_where_training_had_numbers_are_refused():
    with pytest.raises(
        RankPolicyError, match="'age' must hold numbers, as in the training data; it holds texts, such as 'old'"
    ):
        fitted().tensors(columns({"price": [1.0, 1.0]}, age=["", "old"], kind=["a", "a"]), 2)
    # Without a value, nobody knows of which kind a column is.
    side = fitted().tensors(columns({"price": [1.0], "kind": [NAN]}, age=[""]), 1)
    assert side.categories.tolist() == [[0]]


def test_numbers_where_training_had_categories_are_taken_only_as_names_known_from_training():
    side = fitted().tensors(columns({"age": [1] * 3, "price": [1] * 3, "kind": [38, 40, NAN]}), 3)
    assert side.categories[:, 0].tolist() == [2, 1, 0]
    for values in ([40.0], [38.5], [2.0**30]):
        with pytest.raises(
            RankPolicyError, match=r"'kind' must hold categories.*\(38, a, b, \.\.\.\).*categories=\['kind'\]"
        ):
            fitted().tensors(columns({"age": [1], "price": [1], "kind": values}), 1)


def test_a_saved_encoding_encodes_the_same():
    encoding = fitted()
    again = SideEncoding.from_document(json.loads(json.dumps(encoding.document())))
    assert (again.numbers, again.categories, again.unread) == (encoding.numbers, encoding.categories, encoding.unread)
