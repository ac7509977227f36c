"""rankpolicy sample-data"""

import json


def test_files_are_written_once(run, tmp_path):
    made = run("sample-data", tmp_path / "shop", "--json")
    files = json.loads(made.stdout)["files"]
    assert len(files) == 6
    again = run("sample-data", tmp_path / "shop")
    assert again.exit_code == 2
    assert "exists already" in again.stderr
