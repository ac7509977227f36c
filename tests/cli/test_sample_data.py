"""rankpolicy sample-data"""


def test_files_are_written_once(rankpolicy, tmp_path):
    made = rankpolicy("sample-data", tmp_path / "shop", "--json")
    files = made.json["files"]
    assert len(files) == 6
    again = rankpolicy("sample-data", tmp_path / "shop")
    assert again.status == 2
    assert "exists already" in again.stderr
