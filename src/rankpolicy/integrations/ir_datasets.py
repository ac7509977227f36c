"""Test collections in the shape of ir_datasets: queries, documents, judgements and scored documents behind iterators."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from rankpolicy.data.dataset import RankingDataset
from rankpolicy.data.texts.question_answering import from_texts
from rankpolicy.declarations.arguments import checked_kinds
from rankpolicy.types import RankPolicyError


class Collection(Protocol):
    """What is read of a collection; ``ir_datasets.load(...)`` has it, and so may an object of your own."""

    def queries_iter(self) -> Iterable[Any]:
        """Queries, each with query_id and text."""
        ...

    def docs_iter(self) -> Iterable[Any]:
        """Documents, each with doc_id and text."""
        ...

    def qrels_iter(self) -> Iterable[Any]:
        """Judgements, each with query_id, doc_id and relevance."""
        ...


@checked_kinds
def from_ir_datasets(collection: Any, *, items: str = "auto") -> RankingDataset:
    """A dataset of texts from a collection of ir_datasets, with judgements as labels.

    Parameters
    ----------
    collection
        ``ir_datasets.load("...")``, or any object with queries_iter, docs_iter and qrels_iter (and scoreddocs_iter).
    items
        Which documents are the items of a query: those that a first stage retrieved, "scoreddocs", of which those without judgement have
        label 0; or the judged ones, "qrels". "auto" takes scoreddocs where the collection has them.
    """
    missing = [name for name in ("queries_iter", "docs_iter", "qrels_iter") if not hasattr(collection, name)]
    if missing:
        raise RankPolicyError(
            f"a collection must have queries_iter, docs_iter and qrels_iter; {type(collection).__name__} lacks {', '.join(missing)}."
        )
    has_scored = hasattr(collection, "scoreddocs_iter")
    if items not in ("auto", "scoreddocs", "qrels") or (items == "scoreddocs" and not has_scored):
        known = "'auto', 'qrels'" + (", 'scoreddocs'" if has_scored else "; this collection has no scoreddocs")
        raise RankPolicyError(f"items must be one of {known}; got {items!r}.")
    judged: dict[str, dict[str, float]] = {}
    for judgement in collection.qrels_iter():
        judged.setdefault(judgement.query_id, {})[judgement.doc_id] = max(0.0, float(judgement.relevance))
    items_of_query: dict[str, list[str]] = {query: list(labels) for query, labels in judged.items()}
    if items == "scoreddocs" or (items == "auto" and has_scored):
        items_of_query = {}
        for scored in collection.scoreddocs_iter():
            items_of_query.setdefault(scored.query_id, []).append(scored.doc_id)
    queries = {query.query_id: _text(query) for query in collection.queries_iter() if query.query_id in items_of_query}
    needed = {item for query in queries for item in items_of_query[query]}
    texts = {document.doc_id: _text(document) for document in collection.docs_iter() if document.doc_id in needed}
    if absent := needed - texts.keys():
        raise RankPolicyError(f"every item must be a document of the collection; {min(absent)!r} is none.")
    lists = {query: items_of_query[query] for query in queries}
    return from_texts(
        list(queries.values()),
        [[texts[item] for item in of_query] for of_query in lists.values()],
        [[judged.get(query, {}).get(item, 0.0) for item in of_query] for query, of_query in lists.items()],
        query_ids=list(lists),
        item_ids=list(lists.values()),
    )


def _text(record: Any) -> str:
    """The text of a query or document: ir_datasets gives ``default_text`` from all its fields, plain records have ``text``."""
    return str(record.default_text() if hasattr(record, "default_text") else record.text)
