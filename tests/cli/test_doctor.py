from rankpolicy.cli.doctor import PACKAGES
from rankpolicy.optional import EXTRA_OF


def test_it_tells_what_is_there(rankpolicy, monkeypatch, tmp_path):
    (tmp_path / "letor").mkdir()
    monkeypatch.setenv("RANKPOLICY_DATA", str(tmp_path))
    document = rankpolicy("doctor", "--json").json
    assert set(document) == {"versions", "threads", "fast_paths", "packages", "data"}
    assert set(document["packages"]) == set(PACKAGES)
    assert document["data"]["holds"] == ["letor"]
    assert document["fast_paths"]["torch on CPU"]["on"]


def test_it_prints_every_package_and_where_data_is_missing(rankpolicy, monkeypatch, tmp_path):
    monkeypatch.setenv("RANKPOLICY_DATA", str(tmp_path / "none"))
    result = rankpolicy("doctor")
    assert result.status == 0
    assert all(name in result.stdout for name in PACKAGES)
    assert "RANKPOLICY_DATA must be a directory" in result.stdout


def test_a_missing_package_comes_with_its_remedy(rankpolicy, monkeypatch):
    monkeypatch.setitem(PACKAGES, "no-such-package", ("no_such_module", "nothing"))
    monkeypatch.setitem(EXTRA_OF, "no-such-package", "text")
    result = rankpolicy("doctor")
    assert "missing" in result.stdout
    assert "pip install 'rankpolicy[text]'" in result.stdout
