"""Documents reordered for a query, in the shape that callers of Cohere's and Jina's rerankers send."""

from __future__ import annotations

import asyncio
import importlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, cast

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from rankpolicy.service.domain.messages import (
    LONGEST_TEXT,
    MOST_ITEMS,
    FeatureValue,
    Item,
    Name,
    RankAnswer,
    RankRequest,
)
from rankpolicy.service.http.access import Access
from rankpolicy.service.http.bodies import decoded, json_response, read_body
from rankpolicy.service.ranking_service import RankingService
from rankpolicy.types import RankPolicyError

if TYPE_CHECKING:
    from rankpolicy.service.policies.ranker import RankerPolicy

# Features of documents for a query: one mapping from names to values per document.
FeatureFunction = Callable[[str, Sequence[Mapping[str, Any]]], Sequence[Mapping[str, Any]]]
Document = str | Annotated[dict[Name, FeatureValue], Meta(max_length=256)]


class RerankRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Documents to put in order for a query; other fields are not read.

    Parameters
    ----------
    query
        The query.
    documents
        Texts, or objects with a ``text`` and further fields: features of a ranker of features, side columns of a ranker of texts.
        Of longer texts the first 4,096 characters are read.
    model
        Name of the policy, which must be of the kind ranker; None: the first of the service.
    top_n
        How many documents to return; None: all.
    return_documents
        Whether results repeat their documents.
    """

    query: Name
    documents: Annotated[list[Document], Meta(min_length=1, max_length=MOST_ITEMS)]
    model: Name | None = None
    top_n: Annotated[int, Meta(ge=1)] | None = None
    return_documents: bool = False


class RerankResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A document of an answer.

    Parameters
    ----------
    index
        Its index in the request.
    relevance_score
        Between 0 and 1, higher for documents that the model prefers for this query; no probability, and not comparable between queries.
    document
        The document, where it was asked for.
    """

    index: int
    relevance_score: float
    document: dict[str, FeatureValue] | None = None


class RerankAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Documents, best first.

    Parameters
    ----------
    id
        The ranking id of the list: clicks are sent to /v1/events with it, and with the index of the document as item.
    model
        The policy that ranked.
    results
        The documents.
    """

    id: str
    model: str
    results: list[RerankResult]


_REQUESTS = msgspec.json.Decoder(RerankRequest)


def rerank_routes(service: RankingService, access: Access) -> list[Route]:
    """Routes for documents to reorder; version 2 of the path is what newer clients of Cohere call.

    Parameters
    ----------
    service
        The service.
    access
        Who may send them.
    """
    features_of = _feature_function(service.config.rerank_features)

    async def rerank(request: Request) -> Response:
        access.check(request.scope, "rank")
        service.check_load()
        message = decoded(_REQUESTS, await read_body(request.scope, request.receive))
        policy = service.policies.named(message.model).policy
        if policy.kind != "ranker":
            raise RankPolicyError(
                f"model must name a policy of the kind ranker; {message.model or 'the first policy'} is of the kind {policy.kind}."
            )
        reads_texts = cast("RankerPolicy", policy).reads_texts
        documents = [{"text": document} if isinstance(document, str) else document for document in message.documents]
        if features_of is not None and not reads_texts:
            features = await asyncio.to_thread(features_of, message.query, documents)
            documents = [dict(row) for row in features]
        items = _items(documents, reads_texts=reads_texts)
        answer = await service.rank(
            RankRequest(
                query=message.query,
                items=items,
                cutoff=min(message.top_n or MOST_ITEMS, MOST_ITEMS),
                policy=message.model,
            )
        )
        return json_response(_answer(answer, message))

    return [Route(f"/v{version}/rerank", rerank, methods=["POST"]) for version in (1, 2)]


def _items(documents: Sequence[Mapping[str, Any]], *, reads_texts: bool) -> list[Item]:
    """One item per document, named by its index."""
    items = []
    for index, document in enumerate(documents):
        fields = {name: value for name, value in document.items() if name != "text"}
        text = document.get("text")
        if not reads_texts:
            items.append(Item(id=str(index), features=fields))
        elif isinstance(text, str):
            items.append(Item(id=str(index), text=text[:LONGEST_TEXT], side=fields or None))
        else:
            raise RankPolicyError(f"document {index} must be a text or have a field text: this model reads texts.")
    return items


def _answer(answer: RankAnswer, message: RerankRequest) -> RerankAnswer:
    results = []
    for item in answer.items:
        index = int(item.id)
        document = message.documents[index]
        results.append(
            RerankResult(
                index=index,
                # A list that was drawn from a mixture, or that came too late, has no scores: it descends evenly.
                relevance_score=1 - (item.position - 0.5) / len(answer.items)
                if item.score is None
                else _squashed(item.score),
                document=({"text": document} if isinstance(document, str) else document)
                if message.return_documents
                else None,
            )
        )
    return RerankAnswer(id=answer.ranking_id, model=answer.policy, results=results)


def _squashed(score: float) -> float:
    """1 / (1 + exp(-score)), without overflow.

    >>> _squashed(0.0), _squashed(1e5), _squashed(-1e5)
    (0.5, 1.0, 0.0)
    """
    return 0.5 + 0.5 * math.tanh(score / 2)


def _feature_function(path: str | None) -> FeatureFunction | None:
    """The function that ``package.module:name`` names; a setting of whoever runs the service, never part of a request or a model."""
    if path is None:
        return None
    module, _, name = path.partition(":")
    try:
        function = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise RankPolicyError(
            f"rerank_features must name a function as package.module:name; got {path!r} ({error})."
        ) from None
    return _checked(function)


def _checked(function: Any) -> FeatureFunction:
    """The function, whose failures and wrong results are a refusal that says so."""

    def features_of(query: str, documents: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
        size = Meta(min_length=len(documents), max_length=len(documents))
        try:
            rows = msgspec.convert(function(query, documents), Annotated[list[dict[str, FeatureValue]], size])
        except Exception as error:  # whatever the operator's code raises
            raise RankPolicyError(
                "rerank_features must return one dict of numbers and texts per document; "
                f"it ended with {type(error).__name__}: {error!s:.200}"
            ) from error
        return rows

    return features_of
