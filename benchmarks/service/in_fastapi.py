"""The same logic in FastAPI with pydantic: the same bandit, the same store and journal, the same answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import FastAPI
from pydantic import BaseModel, Field

from rankpolicy.service.config import ServiceConfig, read_config
from rankpolicy.service.domain.messages import LONGEST, MOST_FEATURES, MOST_ITEMS, Item, RankRequest
from rankpolicy.service.ranking_service import RankingService

Name = Annotated[str, Field(min_length=1, max_length=LONGEST)]


class ItemIn(BaseModel, extra="forbid"):
    """An item of a request."""

    id: Name
    features: Annotated[dict[Name, float], Field(max_length=MOST_FEATURES)] | list[float] | None = None
    text: str | None = None
    group: Name | None = None


class RankIn(BaseModel, extra="forbid"):
    """A request."""

    query: Name
    items: Annotated[list[ItemIn], Field(max_length=MOST_ITEMS)]
    cutoff: Annotated[int, Field(ge=1, le=MOST_ITEMS)] = 10
    policy: Name | None = None
    ranking_id: Name | None = None


class ShownOut(BaseModel):
    """An item of an answer."""

    id: str
    position: int
    score: float | None
    propensity: float | None


class RankOut(BaseModel):
    """An answer."""

    ranking_id: str
    policy: str
    policy_version: int
    model_sha256: str | None
    items: list[ShownOut]
    list_log_propensity: float | None
    no_propensities: str | None
    logged: bool
    took_us: int


def application(config: str) -> FastAPI:
    """The application.

    Parameters
    ----------
    config
        Path of service.toml.
    """
    service = RankingService(ServiceConfig(**read_config(config)))

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service.start()
        yield
        await asyncio.to_thread(service.stop)

    made = FastAPI(lifespan=lifespan)

    @made.post("/v1/rank", response_model=RankOut)
    async def rank(request: RankIn) -> RankOut:
        items = [Item(**item.model_dump()) for item in request.items]
        given = RankRequest(**{**request.model_dump(exclude={"items"}), "items": items})
        answer = await service.rank(given)
        fields = {name: getattr(answer, name) for name in answer.__struct_fields__ if name != "items"}
        shown = [
            ShownOut(id=item.id, position=item.position, score=item.score, propensity=item.propensity)
            for item in answer.items
        ]
        return RankOut(**fields, items=shown)

    return made
