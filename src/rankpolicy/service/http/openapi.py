"""The interface described in OpenAPI 3.1, from the declarations of the messages."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import msgspec

from rankpolicy.service.domain import messages
from rankpolicy.service.domain.messages import AuditLine, NewEvent, Problem
from rankpolicy.service.http import personalizer_messages as azure
from rankpolicy.service.http.rerank import RerankAnswer, RerankRequest
from rankpolicy.service.http.ubi import UbiEvent, UbiQuery
from rankpolicy.version import __version__

# Summary, name of the operation, what is sent, what is answered.
POSTED: dict[str, tuple[str, str, Any, Any]] = {
    "/v1/rank": ("Order items", "rank", messages.RankRequest, messages.RankAnswer),
    "/v1/events": ("Report what users did", "events", NewEvent | list[NewEvent], messages.EventsAnswer),
    "/v1/policies/{policy}/promote": (
        "Serve a version to all users or a share of them", "promote", messages.Promote, AuditLine
    ),
    "/v1/policies/{policy}/rollback": ("Return to the version before", "rollback", messages.Rollback, AuditLine),
    "/v1/models": ("Send the file of a ranker", "models", bytes, dict),
    "/v1/evaluate": ("Off-policy value of a candidate", "evaluate", messages.Evaluate, dict),
    "/v1/ubi/queries": ("Queries of UBI 1.3", "ubi_queries", UbiQuery | list[UbiQuery], dict),
    "/v1/ubi/events": ("Events of UBI 1.3", "ubi_events", UbiEvent | list[UbiEvent], dict),
    "/v1/rerank": ("Order documents, as RAG tools ask", "rerank", RerankRequest, RerankAnswer),
    "/personalizer/v1.0/rank": ("Choose an action", "personalizer_rank", azure.PersonalizerRank, azure.PersonalizerAnswer),
    "/personalizer/v1.0/events/{event_id}/reward": (
        "Reward the chosen action", "personalizer_reward", azure.PersonalizerReward, None
    ),
    "/personalizer/v1.0/events/{event_id}/activate": ("Have a deferred event learned", "personalizer_activate", None, None),
    "/personalizer/v1.1-preview.1/multislot/rank": (
        "Choose an action for each slot", "personalizer_rank_slots", azure.PersonalizerSlotsRank, azure.PersonalizerSlotsAnswer
    ),
    "/personalizer/v1.1-preview.1/multislot/events/{event_id}/reward": (
        "Reward the actions in slots", "personalizer_reward_slots", azure.PersonalizerSlotRewards, None
    ),
    "/personalizer/v1.1-preview.1/multislot/events/{event_id}/activate": (
        "Have a deferred event with slots learned", "personalizer_activate_slots", None, None
    ),
}  # fmt: skip
READ = {
    "/v1/rankings/{ranking_id}": "A list that was shown",
    "/v1/audit": "Who changed what, the last change first",
    "/v1/policies": "Policies, their versions and the hashes of their states",
    "/v1/statistics": "What the dashboard shows: rates, clicks by position, exposure, propensities",
    "/metrics": "Counters in the text format of Prometheus",
    "/healthz": "Whether the process runs",
    "/readyz": "Whether lists and events can be stored",
}


@cache
def openapi() -> dict[str, Any]:
    """The document."""
    kinds = [kind for _, _, *sent_and_answered in POSTED.values() for kind in sent_and_answered if kind] + [Problem]
    schemas, components = msgspec.json.schema_components(kinds, ref_template="#/components/schemas/{name}")
    content_of = {kind: {"application/json": {"schema": schema}} for kind, schema in zip(kinds, schemas, strict=True)}
    content_of[bytes] = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}

    def posted(path: str, summary: str, name: str, request: Any, answer: Any) -> dict[str, Any]:
        status = "200" if not path.startswith("/personalizer") else "201" if answer else "204"
        return {
            "summary": summary,
            "operationId": name,
            "parameters": _in_path(path),
            **({"requestBody": {"required": True, "content": content_of[request]}} if request else {}),
            "responses": {
                status: {"description": "On disk.", **({"content": content_of[answer]} if answer else {})},
                "409": {"description": "An id was used before, with another content."},
                "4XX": {"description": "Refused.", "content": content_of[Problem]},
                "503": {"description": "Not stored; send it again later.", "content": content_of[Problem]},
            },
        }

    read = {"200": {"description": "Found."}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "rankpolicy", "version": __version__},
        "paths": {path: {"post": posted(path, *operation)} for path, operation in POSTED.items()}
        | {
            path: {"get": {"summary": summary, "parameters": _in_path(path), "responses": read}}
            for path, summary in READ.items()
        },
        "components": {"schemas": components, "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
        "security": [{"key": []}],
    }


def _in_path(path: str) -> list[dict[str, Any]]:
    names = re.findall(r"{(\w+)}", path)
    return [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names]
