"""The messages of Personalizer's API, by the names that its clients send and read; fields that are not declared are not read."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from rankpolicy.service.domain.messages import MOST_SLOTS

MOST_ACTIONS = 50
Id = Annotated[str, Meta(min_length=1, max_length=256)]
Bag = list[dict[str, Any]]


class RankableAction(msgspec.Struct, frozen=True, kw_only=True):
    """An action that may be chosen.

    Parameters
    ----------
    id
        Its name.
    features
        Objects of features: numbers, texts, booleans, lists of them, and objects again (namespaces).
    """

    id: Id
    features: Bag = []


class PersonalizerRank(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Actions of which one is to be chosen.

    Parameters
    ----------
    actions
        The actions; the first is the baseline.
    contextFeatures
        Objects of features of the user, the device, the time ...
    excludedActions
        Ids of actions that may not be chosen; in the answer they stay where they are.
    eventId
        The id by which a reward refers to it; None: made here.
    deferActivation
        Whether it is learned only if it is activated.
    """

    actions: Annotated[list[RankableAction], Meta(min_length=1, max_length=MOST_ACTIONS)]
    context_features: Bag | None = None
    excluded_actions: list[Id] | None = None
    event_id: Id | None = None
    defer_activation: bool | None = None


class PersonalizerSlot(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A slot that gets one action.

    Parameters
    ----------
    id
        Its name.
    baselineAction
        The action that would be there without Personalizer; another one for each slot.
    features
        Objects of features.
    excludedActions
        Ids of actions that may not be there.
    """

    id: Id
    baseline_action: Id
    features: Bag | None = None
    excluded_actions: list[Id] | None = None


class PersonalizerSlotsRank(PersonalizerRank, frozen=True, kw_only=True, rename="camel"):
    """Actions for several slots, no action twice.

    Parameters
    ----------
    slots
        The slots, in the order in which they are filled.
    actions, contextFeatures, excludedActions, eventId, deferActivation
        As for one action.
    """

    slots: Annotated[list[PersonalizerSlot], Meta(min_length=1, max_length=MOST_SLOTS)]


class PersonalizerReward(msgspec.Struct, frozen=True, kw_only=True):
    """The reward of the action that was chosen.

    Parameters
    ----------
    value
        From -1 to 1.
    """

    value: Annotated[float, Meta(ge=-1, le=1)]


class SlotReward(PersonalizerReward, frozen=True, kw_only=True, rename="camel"):
    """The reward of the action in a slot.

    Parameters
    ----------
    slotId, value
        The slot, and its reward from -1 to 1.
    """

    slot_id: Id


class PersonalizerSlotRewards(msgspec.Struct, frozen=True, kw_only=True):
    """Rewards of the actions in slots.

    Parameters
    ----------
    reward
        One per slot.
    """

    reward: Annotated[list[SlotReward], Meta(min_length=1, max_length=MOST_SLOTS)]


class RankedAction(msgspec.Struct, frozen=True, kw_only=True):
    """An action with its probability of being chosen; 0 for an excluded one.

    Parameters
    ----------
    id, probability
        Its name and probability.
    """

    id: str
    probability: float


class PersonalizerAnswer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The action that was chosen.

    Parameters
    ----------
    ranking
        All actions: the chosen one first, then by probability.
    eventId, rewardActionId
        The id for the reward, and the action to show.
    """

    ranking: list[RankedAction]
    event_id: str
    reward_action_id: str


class FilledSlot(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A slot and the action for it.

    Parameters
    ----------
    id, rewardActionId
        The slot, and the action to show there.
    """

    id: str
    reward_action_id: str


class PersonalizerSlotsAnswer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The actions for all slots.

    Parameters
    ----------
    eventId, slots
        The id for the rewards, and the slots in the order of the request.
    """

    event_id: str
    slots: list[FilledSlot]
