"""Text rankers in pipelines of PyTerrier."""

from __future__ import annotations

from typing import Any

from rankpolicy.declarations.arguments import checked_kinds
from rankpolicy.optional import require
from rankpolicy.rankers import Ranker
from rankpolicy.types import RankPolicyError


@checked_kinds
def text_transformer(ranker: Ranker, *, text_field: str = "text") -> Any:
    """A fitted ranker of texts as a ``pt.Transformer`` that reranks: it reads qid, query, docno and the text, and adds score and rank.

    Rankers of features need none: ``pt.ltr.apply_learned_model(rp.PGRank(), form="ltr")``.

    Parameters
    ----------
    ranker
        A fitted ranker of texts.
    text_field
        The column of the text of a document.
    """
    if not ranker._reads_texts:
        raise RankPolicyError(
            f"text_transformer needs a ranker of texts; this {type(ranker).__name__} reads features: "
            "pt.ltr.apply_learned_model(ranker, form='ltr')."
        )
    ranker._require_fitted()
    pt: Any = require("pyterrier", "text_transformer")

    class TextReranker(pt.Transformer):  # type: ignore[misc]
        def transform(self, inp: Any) -> Any:
            pt.validate.columns(inp, includes=["qid", "query", "docno", text_field])
            # The columns of a click table: each distinct query with its items.
            table = inp[["query", text_field]].set_axis(["query_text", "item_text"], axis=1)
            return pt.model.add_ranks(inp.assign(score=ranker.predict(table) if len(inp) else []))

        def __repr__(self) -> str:
            return f"TextReranker({ranker!r})"

    return TextReranker()
