"""A short version of benchmarks/files_under_stress.py, in a process of its own."""

import json
import subprocess
import sys


def test_files_stay_whole_when_processes_meet_and_when_they_are_killed():
    options = ["--processes", "4", "--seconds", "6", "--kills", "12"]
    command = [sys.executable, "-m", "benchmarks.files_under_stress", *options]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["together"]["failed"] == 0, found
    assert found["together"]["saved"] > 0
    assert found["together"]["files"] == ["model.rp"]
    assert found["killed"]["files not whole"] == 0, found
    assert found["killed"]["ended otherwise"] == 0, found
