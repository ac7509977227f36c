"""The client: what it sends, what it sends again, and what it says when that does not help."""

import json
import subprocess
import sys

import httpx
import pytest

import rankpolicy as rp
from rankpolicy.service import Client, ServiceError

SHOWN = {"ranking_id": "r1", "items": [{"id": "a"}]}


def client_with(*answers, **settings):
    """A client whose requests get these answers, the last one for ever; and the requests."""
    requests, left = [], list(answers)

    def answer(request):
        requests.append(request)
        found = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(found, Exception):
            raise found
        status, body = found if isinstance(found, tuple) else (200, found)
        return httpx.Response(status, json=body)

    return Client("http://service", transport=httpx.MockTransport(answer), **settings), requests


def test_it_is_reached_from_the_package_without_being_loaded_with_it():
    assert rp.Client is Client
    assert "Client" in rp.__all__
    program = "import sys, rankpolicy; assert 'rankpolicy.service' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_request_says_what_was_asked():
    client, requests = client_with(SHOWN, key="rp_1_secret")
    assert client.rank(query="q", items=["a", {"id": "b", "features": [1.0]}], cutoff=2) == SHOWN
    sent = json.loads(requests[0].content)
    assert sent["items"] == [{"id": "a"}, {"id": "b", "features": [1.0]}]
    assert (sent["query"], sent["cutoff"], len(sent["ranking_id"])) == ("q", 2, 32)
    assert requests[0].headers["authorization"] == "Bearer rp_1_secret"
    assert "secret" not in repr(client)


def test_retries_send_the_same_ids():
    client, requests = client_with(httpx.ConnectError("refused"), (503, {}), (502, {}), SHOWN)
    client.rank(query="q", items=["a"])
    assert len(requests) == 4
    assert len({request.content for request in requests}) == 1
    client, requests = client_with(httpx.ReadTimeout("slow"), {"accepted": 1})
    client.click(SHOWN, "a")
    first, second = (json.loads(request.content)[0] for request in requests)
    assert first == second
    assert (first["ranking_id"], first["item"]) == ("r1", "a")


@pytest.mark.parametrize(("status", "tries"), [(409, 1), (422, 1), (401, 1), (503, 3)])
def test_what_does_not_help_is_said_with_the_status(status, tries):
    client, requests = client_with((status, {"message": "for a reason"}), attempts=3)
    with pytest.raises(ServiceError, match=f"POST /v1/events failed: status {status}, for a reason") as raised:
        client.events([{"ranking_id": "r1", "item": "a"}])
    assert raised.value.status == status
    assert len(requests) == tries


def test_a_service_that_is_not_there_is_an_error_of_ours():
    client, _ = client_with(httpx.ConnectError("refused"), attempts=2)
    with pytest.raises(rp.RankPolicyError, match="ConnectError"):
        client.policies()


@pytest.mark.parametrize(
    "given", [{"url": "service"}, {"url": 7}, {"key": "ä"}, {"key": "a\nb"}, {"timeout": -1}, {"timeout": float("nan")}]
)
def test_odd_settings_are_refused(given):
    with pytest.raises(rp.RankPolicyError):
        Client(**{"url": "http://service"} | given)
