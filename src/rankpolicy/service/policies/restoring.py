"""A policy made from what the database says about its version."""

from __future__ import annotations

import json

from rankpolicy.service.policies.members import SERVED
from rankpolicy.service.policies.served_policy import ServedPolicy
from rankpolicy.service.records import PolicyVersion


def policy_of_version(version: PolicyVersion) -> ServedPolicy:
    """A policy that learns, with the settings of a version, knowing nothing.

    Parameters
    ----------
    version
        The version.
    """
    return SERVED.named(version.kind)(**json.loads(version.settings))
