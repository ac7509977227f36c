"""The release script refuses what must not be released, and pages beside the code are what tools expect."""

import doctest
import importlib.util
import json
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from rankpolicy.version import __version__

ROOT = Path(__file__).parent.parent
spec = importlib.util.spec_from_file_location("release", ROOT / "scripts" / "release.py")
release = importlib.util.module_from_spec(spec)
spec.loader.exec_module(release)


def test_only_the_next_versions_can_be_released():
    for version in ("0.2.2", "0.3.0", "1.0.0", "0.2.1"):
        release.check_version(version, "0.2.1", tags=["v0.2.0"])
    for version, words in (
        ("0.4.0", "after 0.2.1 may come 0.2.2, 0.3.0, 1.0.0"),
        ("0.2.0", "was released before"),
        ("0.3", "three numbers"),
        ("v0.3.0", "three numbers"),
    ):
        with pytest.raises(release.ReleaseError, match=words):
            release.check_version(version, "0.2.1", tags=["v0.2.0"])


def test_a_release_has_a_section_in_the_changelog():
    changelog = "# Changelog\n\n## 0.3.0\n\nNew: a word.\n\n## 0.2.0\n\nOld.\n\n## 0.1.0\n"
    assert release.section_of(changelog, "0.3.0") == "New: a word."
    assert release.section_of(changelog, "0.2.0") == "Old."
    for version in ("0.1.0", "0.4.0"):
        with pytest.raises(release.ReleaseError, match=f"section '## {version}'"):
            release.section_of(changelog, version)
    assert release.section_of((ROOT / "CHANGELOG.md").read_text(), __version__)


def test_the_version_is_found_in_every_file_that_names_it():
    version_file, citation = (file.read_text() for file in (release.VERSION_FILE, release.CITATION))
    assert '"9.9.9"' in release.with_version(version_file, r'^__version__ = "([^"]+)"', "9.9.9")
    assert re.search(r"^version: 9\.9\.9$", release.with_version(citation, r"^version: (\S+)$", "9.9.9"), re.M)
    assert re.search(rf"^version: {re.escape(__version__)}$", citation, re.M)
    with pytest.raises(release.ReleaseError, match="no version found"):
        release.with_version("", r"^version: (\S+)$", "9.9.9")


def test_examples_of_the_script():
    assert doctest.testmod(release).failed == 0


def test_citation_and_issue_templates_are_yaml():
    yaml = pytest.importorskip("yaml")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors", "version", "license"} <= set(citation)
    for file in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"):
        template = yaml.safe_load(file.read_text())
        if file.name != "config.yml":
            assert {"name", "description", "body"} <= set(template)
            assert all({"type", "attributes"} <= set(part) for part in template["body"])


def test_every_tag_has_a_section_in_the_changelog():
    tags = subprocess.run(["git", "-C", ROOT, "tag", "--list", "v*"], capture_output=True, text=True).stdout.split()
    for tag in tags:
        assert release.section_of((ROOT / "CHANGELOG.md").read_text(), tag.removeprefix("v")), tag


def test_the_image_is_slim_and_runs_without_root_and_without_torch():
    lines = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text()).splitlines()
    instructions = [line.partition(" ")[::2] for line in lines if line and not line.startswith("#")]
    of_kind = {kind: [rest for name, rest in instructions if name == kind] for kind, _ in instructions}
    assert all(re.match(r"python:3\.\d+-slim\b", base) for base in of_kind["FROM"])
    assert of_kind["USER"] == ["10001"]
    assert of_kind["VOLUME"] == ["/data"]
    program = json.loads(of_kind["HEALTHCHECK"][0].partition("CMD ")[2])
    assert "/readyz" in program[2]
    compile(program[2], "HEALTHCHECK", "exec")
    verb = json.loads(of_kind["CMD"][0])
    assert verb[0] == "serve"
    assert f"http://127.0.0.1:{of_kind['EXPOSE'][0]}/" in program[2]
    assert verb[verb.index("--port") + 1] == of_kind["EXPOSE"][0]
    extras = re.search(r"'\.\[(\w+)\]'", "".join(of_kind["RUN"]))[1]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    required = [*project["dependencies"], *project["optional-dependencies"][extras]]
    assert extras == "serve"
    assert not [name for name in required if re.match(r"torch|polars|matplotlib|rankpolicy", name)]
    copied = of_kind["COPY"][0].split()[:-1]
    assert all((ROOT / name).exists() for name in copied)
