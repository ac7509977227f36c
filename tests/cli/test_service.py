"""rankpolicy serve and rankpolicy service: what is refused before anything is opened, keys, replay."""

import json

import pytest

from rankpolicy.service.log.sqlite import SqliteStore
from tests.service.parts import BANDIT, Parts


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("windw_seconds = 3", "Unknown setting 'windw_seconds'. Did you mean 'window_seconds'"),
        ("window_seconds = 0", "window_seconds must be above 0"),
        ("window_seconds = ", "must be a TOML file"),
        ("[policies.a]\nkind = 'bandti'", "policies.a: Unknown kind of policy 'bandti'. Did you mean 'bandit'"),
        ("[policies.a]\nbandit = 'dcm-ts'", "policies.a must be a table with a kind: bandit, given, uniform, ranker"),
        ("[policies.a]\nkind = 'bandit'\nbandit = 'top-rank'", "counts clicks and observations"),
        ("[policies.a]\nkind = 'ranker'", "policies.a: settings of ranker are incomplete"),
        ("[policies.a]\nkind = 'ranker'\nmodel = 'none.rp'", "no model file at none.rp"),
        ("[policies.'a/b']\nkind = 'given'", "the name of a policy must be"),
        ("policies = 3", "policies must be a table"),
    ],
)
def test_a_configuration_that_cannot_be_served_is_refused(rankpolicy, tmp_path, text, message):
    (tmp_path / "service.toml").write_text(text)
    result = rankpolicy("serve", "--config", tmp_path / "service.toml", "--db", tmp_path / "service.db", "--port", 0)
    assert (result.status, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    said = json.loads(result.stderr)  # stderr of a service is for programs
    assert said["level"] == "error"
    assert message in said["event"]
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "service.db").exists()


def test_keys_are_made_listed_and_revoked(rankpolicy, refused, tmp_path):
    db = tmp_path / "service.db"
    made = rankpolicy("service", "key", "new", "--db", db, "--scopes", "rank,read", "--json").json
    assert made["key"].startswith(f"rp_{made['key_id']}_")
    assert rankpolicy("service", "key", "new", "--db", db).stdout.startswith("rp_")
    listed = rankpolicy("service", "key", "list", "--db", db, "--json").json["keys"]
    assert {"key_id": made["key_id"], "scopes": ["rank", "read"]} in listed
    assert made["key"] not in str(listed)
    assert rankpolicy("service", "key", "revoke", made["key_id"], "--db", db).status == 0
    assert len(rankpolicy("service", "key", "list", "--db", db, "--json").json["keys"]) == 1
    assert "no key" in refused("service", "key", "revoke", made["key_id"], "--db", db)
    assert "Unknown scope 'rnak'" in refused("service", "key", "new", "--db", db, "--scopes", "rnak")
    assert "Unknown action 'make'" in refused("service", "key", "make", "--db", db)
    assert "there is no database" in refused("service", "key", "list", "--db", tmp_path / "none.db")
    assert "with revoke" in refused("service", "key", "revoke", "--db", db)


def test_keys_end_and_have_a_rate(rankpolicy, refused, tmp_path):
    db = tmp_path / "service.db"
    line = ("service", "key", "new", "--db", db, "--expires", "2199-12-31", "--rate", 2.5, "--json")
    made = rankpolicy(*line).json
    assert (made["expires"], made["rate"]) == ("2199-12-31T00:00:00Z", 2.5)
    listed = rankpolicy("service", "key", "list", "--db", db)
    assert "until 2199-12-31T00:00:00Z  2.5 requests per second" in listed.stdout
    assert "must lie ahead" in refused("service", "key", "new", "--db", db, "--expires", "2020-01-01")
    assert "above 0" in refused("service", "key", "new", "--db", db, "--rate", 0)
    assert "of a new key" in refused("service", "key", "list", "--db", db, "--rate", 1)


def test_replay_says_whether_snapshots_agree_with_the_log(rankpolicy, refused, tmp_path):
    parts = Parts(tmp_path / "service.db", {"default": BANDIT, "own": {"kind": "given"}})
    parts.show("r1")
    parts.show("r2", policy="own")
    parts.end_windows()
    parts.store.save_snapshot(parts.live.named(None).snapshot(), now=parts.clock.time)
    parts.store.close()
    found = rankpolicy("service", "replay", "--db", parts.path, "--json")
    assert found.status == 0
    assert found.json["is_equal"]
    assert found.json["rows"] == {"rankings": 2, "events": 0, "attachments": 0, "lessons": 1}
    assert "1 equal" in rankpolicy("service", "replay", "--db", parts.path).stdout
    store = SqliteStore(parts.path)
    store._connection.execute("UPDATE snapshots SET state = x'00'")
    store.close()
    assert rankpolicy("service", "replay", "--db", parts.path).status == 1
    store = SqliteStore(parts.path)
    store._connection.execute("UPDATE lessons SET clicks = x'010101'")
    store.close()
    assert "row 3 of lessons is damaged" in refused("service", "replay", "--db", parts.path)
