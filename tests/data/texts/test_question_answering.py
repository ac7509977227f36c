import gzip
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import rankpolicy as rp
from rankpolicy.data.click_table.list_columns import Shown, SideColumns
from rankpolicy.data.fingerprints import fingerprint
from rankpolicy.data.formats.dataset_files import read_dataset

HEADER = "QuestionID\tQuestion\tDocumentID\tDocumentTitle\tSentenceID\tSentence\tLabel\n"
REAL = pytest.mark.skipif("RANKPOLICY_DATA" not in os.environ, reason="RANKPOLICY_DATA is not set")


def small():
    return rp.from_texts(
        ["who?", "where?", "why?"], [["me", "you"], ["here", "me", "there"], ["so"]], [[1, 0], [0, 0, 1], [1]]
    )


def test_items_with_the_same_text_share_it():
    texts = small().texts
    assert texts.distinct == ("me", "you", "here", "there", "so")
    assert texts.of_item.tolist() == [0, 1, 2, 0, 3, 4]


def test_parts_of_a_dataset_keep_the_texts_of_their_queries():
    part = small()[[2, 1]]
    assert part.texts_by_query.queries == ("why?", "where?")
    assert [part.texts_by_query.item(item) for item in range(part.num_items)] == ["so", "here", "me", "there"]
    assert part.labels_by_query.tolist() == [1, 0, 0, 1]


@pytest.mark.parametrize("other", [small(), rp.from_texts(["what?"], [["that", "me"]], [[0, 1]])])
def test_concatenated_datasets_say_what_they_said_before(other):
    first = small()
    both = rp.data.concatenate([first, other])
    assert both.texts.queries == first.texts.queries + other.texts.queries
    said = [both.texts.item(item) for item in range(both.num_items)]
    assert said == [d.texts.item(item) for d in (first, other) for item in range(d.num_items)]


def test_features_and_texts_do_not_concatenate():
    features = rp.from_arrays(np.zeros((1, 0)), [0], group=[1])
    with pytest.raises(rp.RankPolicyError, match="all or none of the datasets to concatenate must have texts"):
        rp.data.concatenate([small(), features])


def test_the_fingerprint_tells_texts_apart():
    one, same, other = (rp.from_texts(["q"], [[text]]) for text in ("a", "a", "b"))
    assert fingerprint(one) == fingerprint(same) != fingerprint(other)


@pytest.mark.parametrize(
    ("queries", "items", "labels", "message"),
    [
        (["q"], [[]], None, "at least one item; query 0 has none"),
        ([], [], None, "there is no query"),
        (["q", "r"], [["a"]], None, "a list for each of the 2 queries; got 1"),
        (["q"], [["a", "b"]], [[1]], "labels must hold one value per item"),
        (["q"], [["a", " "]], None, "every item must have a text; item 1 has ' '"),
        ([""], [["a"]], None, "every query must have a text; query 0 has ''"),
        (["q"], [["a"]], [[-1]], "0 or more; row 0 has -1"),
    ],
)
def test_texts_that_cannot_be_used_are_refused(queries, items, labels, message):
    with pytest.raises(rp.RankPolicyError, match=message):
        rp.from_texts(queries, items, labels)


ROWS = [
    {"query": "who “is”\u2028it?", "items": ["me", "you"], "labels": [1, 0], "query_id": "7"},
    {"query": "where?", "items": ["here"], "labels": [2.5], "query_id": "9"},
]


@pytest.mark.parametrize("name", ["qa.jsonl", "qa.jsonl.gz", "qa.parquet"])
def test_json_lines_and_parquet_hold_the_same(name, tmp_path):
    path = tmp_path / name
    if name.endswith("parquet"):
        pytest.importorskip("polars").DataFrame(ROWS, strict=False).write_parquet(path)
    else:
        lines = "\n".join(json.dumps(row, ensure_ascii=False) for row in ROWS).encode()
        path.write_bytes(gzip.compress(lines) if name.endswith("gz") else lines)
    dataset = rp.data.read_question_answering(path)
    assert dataset.texts.queries == tuple(row["query"] for row in ROWS)
    assert dataset.texts.distinct == ("me", "you", "here")
    assert dataset.labels.tolist() == [1, 0, 2.5]
    assert dataset.query_ids.tolist() == ["7", "9"]


def test_data_to_rank_may_come_without_labels(tmp_path):
    (tmp_path / "qa.jsonl").write_text('{"query": "who?", "items": ["me", "you"]}\n')
    assert rp.data.read_question_answering(tmp_path / "qa.jsonl").labels.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"query": "q", "items": []}', r"line 2: items must be a list of at least one text; got \[\]"),
        ('{"query": "q"}', "line 2: a question needs query and items; items missing"),
        ('{"query": " ", "items": ["a"]}', "line 2: query must be a text that is not empty"),
        ('{"query": "q", "items": ["a", ""], "labels": [0, 1]}', "line 2: item 1 must be a text that is not empty"),
        ('{"query": "q", "items": ["a", "b"], "labels": [0]}', "line 2: labels must be as many as items, 2; got 1"),
        ('{"query": "q", "items": ["a"], "labels": ["x"]}', "line 2: labels must be numbers, 0 or more; got 'x'"),
        ('{"query": "q", "items": ["a"]}', "line 2: labels must be in all rows or in none"),
        ('{"query": ', "line 2 must be a JSON object; it cannot be read"),
        ("[1]", "line 2 must be a JSON object such as"),
    ],
)
def test_a_line_that_is_wrong_is_named(line, message, tmp_path):
    (tmp_path / "qa.jsonl").write_text('{"query": "q", "items": ["a"], "labels": [1]}\n' + line + "\n")
    with pytest.raises(rp.RankPolicyError, match=message):
        rp.data.read_question_answering(tmp_path / "qa.jsonl")


def wikiqa(tmp_path, *lines):
    path = tmp_path / "wikiqa.tsv"
    path.write_text(HEADER + "".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_wikiqa_keeps_quotes_and_only_questions_with_an_answer(tmp_path):
    path = wikiqa(
        tmp_path,
        'Q1\twho said "x?\tD1\tT\tD1-0\t"Not this" one\t0',
        'Q1\twho said "x?\tD1\tT\tD1-1\tThis "one\t1',
        "Q2\twhere?\tD2\tT\tD2-0\tNowhere\t0",
    )
    dataset = rp.data.read_wikiqa(path)
    assert dataset.query_ids.tolist() == ["Q1"]
    assert dataset.item_ids.tolist() == ["D1-0", "D1-1"]
    assert dataset.texts.queries == ('who said "x?',)
    assert dataset.texts.distinct == ('"Not this" one', 'This "one')
    assert dataset.labels.tolist() == [0, 1]
    assert rp.data.read_wikiqa(path, needs_answer=False).num_queries == 2


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("Q1\tq\tD\tT\tS\ta", "line 2 must have 7 cells with tabs between; it has 6"),
        ("Q1\tq\tD\tT\tS\ta\t2", "line 2: Label must be 0 or 1; got '2'"),
        ("Q1\tq\tD\tT\tS\t \t1", "line 2: Sentence must be a text that is not empty"),
        ("Q1\tq\tD\tT\tS\ta\t0", "must hold a question with a correct answer; of 1 none has one"),
    ],
)
def test_a_wikiqa_line_that_is_wrong_is_named(line, message, tmp_path):
    with pytest.raises(rp.RankPolicyError, match=message):
        rp.data.read_wikiqa(wikiqa(tmp_path, line))


def test_wikiqa_needs_its_header(tmp_path):
    (tmp_path / "w.tsv").write_text("Q1\tq\tD\tT\tS\ta\t1\n")
    with pytest.raises(rp.RankPolicyError, match="line 1 must be WikiQA's header"):
        rp.data.read_wikiqa(tmp_path / "w.tsv")


def insuranceqa(tmp_path, line="life\tidx_1 idx_2\t3\t1 2 3 4"):
    (tmp_path / "original").mkdir()
    pools = tmp_path / "original" / "InsuranceQA.question.anslabel.token.100.pool.solr.train.encoded.gz"
    pools.write_bytes(gzip.compress(f"{line}\n".encode()))
    (tmp_path / "original" / "vocabulary.gz").write_bytes(gzip.compress(b"idx_1\tWhat\nidx_2\tcosts?\n"))
    answers = {str(number): f" answer {number}" for number in range(1, 6)}
    (tmp_path / "answers.en.json.gz").write_bytes(gzip.compress(json.dumps(answers).encode()))
    return tmp_path


def test_insuranceqa_adds_the_correct_answers_to_the_pool(tmp_path):
    dataset = rp.data.read_insuranceqa(insuranceqa(tmp_path, "life\tidx_1 idx_2\t5 2\t1 4 2"), "train")
    assert dataset.texts.queries == ("What costs?",)
    assert dataset.item_ids.tolist() == ["1", "2", "4", "5"]
    assert dataset.labels.tolist() == [0, 1, 0, 1]
    assert dataset.texts.distinct == ("answer 1", "answer 2", "answer 4", "answer 5")


def test_shorter_lists_keep_the_correct_answers(tmp_path):
    folder = insuranceqa(tmp_path)
    for seed in range(5):
        dataset = rp.data.read_insuranceqa(folder, "train", max_items=2, random_state=seed)
        assert dataset.num_items == 2
        assert dataset.item_ids[dataset.labels == 1].tolist() == ["3"]


def test_random_wrong_answers_are_drawn_from_all_answers(tmp_path):
    folder = insuranceqa(tmp_path, "life\tidx_1\t3\t3")  # the search engine found nothing but the correct answer
    file = "InsuranceQA.question.anslabel.token.{}.pool.solr.train.encoded.gz"
    (folder / "original" / file.format(3)).write_bytes((folder / "original" / file.format(100)).read_bytes())
    seen = set()
    for seed in range(20):
        dataset = rp.data.read_insuranceqa(folder, "train", pool=3, wrong_answers="random", random_state=seed)
        assert dataset.num_items == 3
        assert dataset.item_ids[dataset.labels == 1].tolist() == ["3"]
        seen |= set(dataset.item_ids.tolist())
    assert seen == {"1", "2", "3", "4", "5"}
    few = rp.data.read_insuranceqa(folder, "train", wrong_answers="random")  # there are but five answers
    assert few.item_ids.tolist() == ["1", "2", "3", "4", "5"]
    assert rp.data.read_insuranceqa(folder, "train", wrong_answers="random", max_items=2).num_items == 2
    with pytest.raises(rp.RankPolicyError, match="wrong_answers must be one of pool, random; got 'solr'"):
        rp.data.read_insuranceqa(folder, "train", wrong_answers="solr")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("life\tidx_1\t3", "line 1 must have 4 cells"),
        ("life\tidx_9\t3\t1 2", "line 1: 'idx_9' is in neither"),
        ("life\tidx_1\t3\t1 77", "line 1: '77' is in neither"),
        ("life\tidx_1\t\t1 2", "line 1: the third cell must hold the numbers of correct answers"),
    ],
)
def test_an_insuranceqa_line_that_is_wrong_is_named(line, message, tmp_path):
    with pytest.raises(rp.RankPolicyError, match=message):
        rp.data.read_insuranceqa(insuranceqa(tmp_path, line), "train")


@REAL
def test_wikiqa_has_the_questions_of_the_papers():
    folder = Path(os.environ["RANKPOLICY_DATA"]) / "wikiqa"
    parts = [rp.data.read_wikiqa(folder / f"WikiQA-{part}.tsv.gz") for part in ("train", "dev", "test")]
    assert [part.num_queries for part in parts] == [873, 126, 243]
    assert [int(part.labels.sum()) for part in parts] == [1040, 140, 293]


@REAL
def test_insuranceqa_has_all_gold_pairs():
    dataset = rp.data.read_insuranceqa(Path(os.environ["RANKPOLICY_DATA"]) / "insuranceqa_v2", "test")
    assert dataset.num_queries == 2000
    assert dataset.labels.sum() == 3308
    assert dataset.has_relevant_items().all()


@pytest.mark.parametrize("name", ["qa.jsonl", "qa.jsonl.gz", "qa.parquet", "qa.tsv"])
def test_the_command_line_finds_the_format_by_the_name(name, tmp_path):
    path = tmp_path / name
    if name.endswith("parquet"):
        pytest.importorskip("polars").DataFrame([{"query": "q", "items": ["a"], "labels": [1]}]).write_parquet(path)
    elif name.endswith("tsv"):
        wikiqa(tmp_path, "Q1\tq\tD\tT\tS\ta\t1").rename(path)
    else:
        line = b'{"query": "q", "items": ["a"], "labels": [1]}\n'
        path.write_bytes(gzip.compress(line) if name.endswith("gz") else line)
    dataset = read_dataset(path)
    assert (dataset.texts.queries, dataset.texts.distinct, dataset.labels.tolist()) == (("q",), ("a",), [1])


def test_the_fingerprint_tells_side_columns_shown_lists_and_weights_apart():
    plain = rp.from_texts(["who?"], [["me", "you"]], [[0, 1]])
    changes = [
        {"side_by_query": SideColumns(numbers={"age": np.array([1, 2], np.float32)})},
        {"side_by_query": SideColumns(numbers={"age": np.array([1, np.nan], np.float32)})},
        {"side_by_query": SideColumns(categories={"age": np.array(["1", "2"])})},
        {"shown_by_query": Shown(ranks=np.array([1, 2]))},
        {"shown_by_query": Shown(ranks=np.array([2, 1]))},
        {"query_weights": np.array([2.0])},
    ]
    prints = [fingerprint(plain), *(fingerprint(replace(plain, **change)) for change in changes)]
    assert len(set(prints)) == len(prints)
