"""InsuranceQA V2 (Feng et al. 2015): questions of the public, answered by insurance professionals, with pools from a search engine."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.texts.question_answering import check_text, from_texts, text_lines
from rankpolicy.declarations.arguments import checked_kinds, seeded
from rankpolicy.files import checked_file, read_text_bytes
from rankpolicy.types import RankPolicyError

SPLITS = ("train", "valid", "test")
WRONG_ANSWERS = ("pool", "random")


@checked_kinds
def read_insuranceqa(
    directory: str | os.PathLike[str],
    split: str,
    *,
    pool: int = 100,
    wrong_answers: str = "pool",
    max_items: int | None = None,
    random_state: int = 0,
) -> RankingDataset:
    """Read ``original/InsuranceQA.question.anslabel.token.{pool}.pool.solr.{split}.encoded.gz``, its vocabulary and ``answers.en.json.gz``.

    The items of a question are its pool and its correct answers (which the pool contains in about two of three cases), each once, in the
    order of their numbers, so that their order is unrelated to their labels.

    Parameters
    ----------
    directory
        The folder of InsuranceQA V2.
    split
        "train", "valid" or "test".
    pool
        Size of the pools, as in the file names: 100, 500, 1000 or 1500.
    wrong_answers
        Where wrong answers come from: "pool", those that the search engine found, which resemble correct ones; "random", answers to
        any question, drawn anew for every question so that it has ``pool`` items in all (Gampa & Fujita 2019), which is far easier.
    max_items
        Keep at most so many items per question, all correct answers and others at random; None keeps all.
    random_state
        Seed of these choices.
    """
    root = Path(directory)
    if split not in SPLITS:
        raise RankPolicyError(f"split must be one of {', '.join(SPLITS)}; got {split!r}.")
    if wrong_answers not in WRONG_ANSWERS:
        raise RankPolicyError(f"wrong_answers must be one of {', '.join(WRONG_ANSWERS)}; got {wrong_answers!r}.")
    if max_items is not None and max_items < 1:
        raise RankPolicyError(f"max_items must be at least 1, or None for all; got {max_items}.")
    file = root / "original" / f"InsuranceQA.question.anslabel.token.{pool}.pool.solr.{split}.encoded.gz"
    words = _vocabulary(root / "original" / "vocabulary.gz")
    answers = _answers(root / "answers.en.json.gz")
    all_labels = list(answers)
    generator = seeded(random_state)
    queries, items, labels, item_ids = [], [], [], []
    for location, line in text_lines(checked_file(file)):
        cells = line.split("\t")
        if len(cells) != 4:
            raise RankPolicyError(
                f"{location} must have 4 cells with tabs between: domain, question, answers, pool; it has {len(cells)}."
            )
        question, correct, wrong_candidates = (cell.split() for cell in cells[1:])
        unknown = [word for word in question if word not in words] or [
            label for label in (*correct, *wrong_candidates) if label not in answers
        ]
        if unknown:
            raise RankPolicyError(
                f"{location}: {unknown[0]!r} is in neither vocabulary.gz nor answers.en.json.gz. Are the files of one version?"
            )
        query = " ".join(words[word] for word in question)
        check_text(query, "question", location)
        if not correct:
            raise RankPolicyError(f"{location}: the third cell must hold the numbers of correct answers; it is empty.")
        if wrong_answers == "random":
            wrong_candidates = _drawn(all_labels, correct, pool, generator)
        wrong = sorted(set(wrong_candidates) - set(correct), key=int)
        if max_items is not None and len(wrong) > max_items - len(set(correct)):
            wrong = generator.permutation(wrong)[: max(0, max_items - len(set(correct)))].tolist()
        shown = sorted({*correct, *wrong}, key=int)
        queries.append(query)
        items.append([answers[label] for label in shown])
        labels.append([int(label in correct) for label in shown])
        item_ids.append(shown)
    return from_texts(queries, items, labels, item_ids=item_ids)


def _drawn(labels: Sequence[str], correct: Sequence[str], num_items: int, generator: np.random.Generator) -> list[str]:
    """Wrong answers, drawn without replacement, for a question of so many items in all."""
    num_wrong = max(0, num_items - len(set(correct)))
    # As many more as there are correct ones, in case all of these are drawn.
    indices = generator.choice(len(labels), min(num_wrong + len(set(correct)), len(labels)), replace=False)
    return [label for label in (labels[index] for index in indices) if label not in correct][:num_wrong]


def _vocabulary(file: Path) -> dict[str, str]:
    words = {}
    for location, line in text_lines(checked_file(file)):
        code, tab, word = line.partition("\t")
        if not tab:
            raise RankPolicyError(f"{location} must be a code, a tab and a word; got {line:.60}")
        words[code] = word
    return words


def _answers(file: Path) -> dict[str, str]:
    try:
        answers = json.loads(read_text_bytes(checked_file(file)).tobytes())
    except ValueError as error:
        raise RankPolicyError(
            f"{file} must be a JSON object of answers by number; it cannot be read ({error})."
        ) from None
    for label, text in answers.items():
        check_text(text, f"answer {label}", str(file))
    return {label: text.strip() for label, text in answers.items()}
