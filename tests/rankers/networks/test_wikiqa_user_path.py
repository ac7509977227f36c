"""What a user does with WikiQA: train, save, load in a new process, rank answers to a question."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import rankpolicy as rp

QUESTION = "how are glacier caves formed?"
RANK_IN_A_NEW_PROCESS = """
import json, sys
import rankpolicy as rp
path, question, *items = json.load(sys.stdin)
print(json.dumps(rp.load(path).rank_texts(question, items)))
"""

pytestmark = pytest.mark.skipif(
    "RANKPOLICY_DATA" not in os.environ, reason="RANKPOLICY_DATA does not name the folder of the public datasets"
)


@pytest.fixture(scope="module")
def train():
    return rp.data.read_wikiqa(Path(os.environ["RANKPOLICY_DATA"]) / "wikiqa" / "WikiQA-train.tsv.gz")[:10]


@pytest.fixture(scope="module")
def ranker(train):
    network = rp.models.MCAN(hidden=(16, 16), recurrent=16, embedding_size=16, max_tokens=40, dropout=0.0)
    how = {"reward": "mean(ap, rr)", "num_samples": 8, "max_positions": 5, "learning_rate": 5e-3}
    return rp.BanditRank(model=network, num_networks=1, **how, batch_queries=5, epochs=40).fit(train)


def test_a_new_process_ranks_the_answers_to_a_question(ranker, train, tmp_path):
    [number] = [number for number, text in enumerate(train.texts.queries) if text == QUESTION]
    question = train[number : number + 1]
    items = [question.texts.item(item) for item in range(question.num_items)]
    ranker.save(tmp_path / "wikiqa.rp")
    ranked = json.loads(
        subprocess.run(
            [sys.executable, "-c", RANK_IN_A_NEW_PROCESS],
            input=json.dumps([str(tmp_path / "wikiqa.rp"), QUESTION, *items]),
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    )
    texts, scores = zip(*ranked, strict=True)
    assert sorted(texts) == sorted(items)
    assert list(scores) == sorted(scores, reverse=True)
    # The question is one of those it was trained on: it has learned the answer.
    assert texts[0] == items[int(question.labels.argmax())]
    assert ranked == [list(pair) for pair in ranker.rank_texts(QUESTION, items)]


@pytest.mark.parametrize(
    ("question", "items", "message"),
    [
        (QUESTION, [], "every query must have at least one item; query 0 has none"),
        (QUESTION, ["A cave.", " "], "every item must have a text; item 1 has ' '"),
        ("", ["A cave."], "every query must have a text; query 0 has ''"),
    ],
)
def test_texts_that_cannot_be_ranked_are_refused(question, items, message, ranker):
    with pytest.raises(rp.RankPolicyError, match=message):
        ranker.rank_texts(question, items)


def test_word_vectors_with_a_line_of_the_wrong_width_stop_the_training(train, tmp_path):
    (tmp_path / "glove.txt").write_text("how 1 2 3\nare 1 2\n")
    with pytest.raises(
        rp.RankPolicyError, match=r"glove\.txt, line 2 must be a word and 3 numbers, as line 1 is; it has 2"
    ):
        rp.BanditRank(model=rp.models.MCAN(hidden=(8, 8), embeddings=str(tmp_path / "glove.txt")), epochs=1).fit(train)
