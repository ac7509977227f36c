"""WikiQA (Yang et al. 2015): questions from a search engine, with sentences of a Wikipedia summary as candidate answers."""

from __future__ import annotations

import os

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.texts.question_answering import check_text, from_texts, text_lines
from rankpolicy.declarations.arguments import checked_kinds
from rankpolicy.files import checked_file
from rankpolicy.types import RankPolicyError

COLUMNS = ("QuestionID", "Question", "DocumentID", "DocumentTitle", "SentenceID", "Sentence", "Label")


@checked_kinds
def read_wikiqa(path: str | os.PathLike[str], *, needs_answer: bool = True) -> RankingDataset:
    """Read one of WikiQA's tsv files.

    Parameters
    ----------
    path
        The file, plain or gzip.
    needs_answer
        Leave out questions without a correct answer, as all papers on answer selection do; 873, 126 and 243 questions of the three parts
        remain.
    """
    file = checked_file(path)
    rows: list[tuple[str, list[str]]] = []
    for location, line in text_lines(file):
        # Split by hand: to a csv reader the quotation marks in the texts would be syntax.
        cells = line.split("\t")
        if not rows and tuple(cells) != COLUMNS:
            raise RankPolicyError(
                f"{location} must be WikiQA's header, {' '.join(COLUMNS)} with tabs between; got {line:.80}"
            )
        if len(cells) != len(COLUMNS):
            raise RankPolicyError(f"{location} must have {len(COLUMNS)} cells with tabs between; it has {len(cells)}.")
        rows.append((location, cells))
    questions: dict[str, tuple[str, list[tuple[str, str, int]]]] = {}
    for location, (query_id, query, _, _, item_id, sentence, label) in rows[1:]:
        check_text(query, "Question", location)
        check_text(sentence, "Sentence", location)
        if label not in ("0", "1"):
            raise RankPolicyError(f"{location}: Label must be 0 or 1; got {label!r}.")
        known_query, answers = questions.setdefault(query_id, (query, []))
        if known_query != query:
            raise RankPolicyError(
                f"{location}: QuestionID {query_id} asked {known_query!r:.60} before; now {query!r:.60}."
            )
        answers.append((item_id, sentence, int(label)))
    usable_questions = {
        query_id: question
        for query_id, question in questions.items()
        if not needs_answer or any(label for _, _, label in question[1])
    }
    if not usable_questions:
        raise RankPolicyError(f"{file} must hold a question with a correct answer; of {len(questions)} none has one.")
    return from_texts(
        [query for query, _ in usable_questions.values()],
        [[sentence for _, sentence, _ in answers] for _, answers in usable_questions.values()],
        [[label for _, _, label in answers] for _, answers in usable_questions.values()],
        query_ids=list(usable_questions),
        item_ids=[[item_id for item_id, _, _ in answers] for _, answers in usable_questions.values()],
    )
