"""The fuzzers of the public face and of the command line, seeded, for about a minute together; each in a process of its own."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(("module", "count"), [("public_face", 3000), ("command_lines", 250)])
def test_no_raw_exception(module, count):
    command = [sys.executable, "-m", f"tests.fuzz.{module}", str(count), "12"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert result.returncode == 0, result.stdout[-5000:] + result.stderr[-2000:]
