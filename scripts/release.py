"""Make a release on this machine: version, changelog, build, and a trial of the wheel in an empty environment.

    python scripts/release.py 0.3.0            # all of it; ends with a commit and a tag
    python scripts/release.py 0.3.0 --trial    # everything but the commit and the tag; the version is put back

Nothing is published.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
VERSION_FILE = ROOT / "src" / "rankpolicy" / "version.py"
CITATION = ROOT / "CITATION.cff"
CHANGELOG = ROOT / "CHANGELOG.md"
TRIAL = """
import rankpolicy as rp
assert rp.__version__ == {version!r}, rp.__version__
data = rp.make_web_search(30, random_state=0)
ranker = rp.PGRank(epochs=2, num_networks=1).fit(data, progress=False)
ranker.save("model.rp")
assert (rp.load("model.rp").predict(data) == ranker.predict(data)).all()
print(rp.evaluate(ranker, data, "ndcg@10"))
"""


class ReleaseError(Exception):
    """Something that must be mended before a release."""


def next_versions(version: str) -> list[str]:
    """The versions that may follow one.

    >>> next_versions("0.2.1")
    ['0.2.2', '0.3.0', '1.0.0']
    """
    major, minor, patch = map(int, version.split("."))
    return [f"{major}.{minor}.{patch + 1}", f"{major}.{minor + 1}.0", f"{major + 1}.0.0"]


def check_version(new: str, old: str, *, tags: list[str]) -> None:
    """Refuse a version that is no number, skips one, or was released before.

    A version that the code names already may be released once: it is the first one, or a release that was interrupted.
    """
    if not re.fullmatch(r"\d+\.\d+\.\d+", new):
        raise ReleaseError(f"the version must be three numbers, such as 0.3.0; got {new!r}.")
    if f"v{new}" in tags:
        raise ReleaseError(f"v{new} was released before. After {old} may come {', '.join(next_versions(old))}.")
    if new not in (old, *next_versions(old)):
        raise ReleaseError(f"after {old} may come {', '.join(next_versions(old))}; got {new}.")


def section_of(changelog: str, version: str) -> str:
    """What the changelog says about a version."""
    found = re.search(rf"^## {re.escape(version)}\b[^\n]*\n(.*?)(?=^## |\Z)", changelog, re.M | re.S)
    if found is None or not found[1].strip():
        raise ReleaseError(f"CHANGELOG.md must have a section '## {version}' that says what a user will notice.")
    return found[1].strip()


def with_version(text: str, pattern: str, version: str) -> str:
    """A file with another version; the pattern has one group, the number."""
    found = re.search(pattern, text, re.M)
    if found is None:
        raise ReleaseError(f"no version found by {pattern!r}.")
    return text[: found.start(1)] + version + text[found.end(1) :]


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """Run a command and return what it prints."""
    print("$", " ".join(map(str, command)), flush=True)
    done = subprocess.run(command, cwd=cwd, text=True, capture_output=True)
    if done.returncode != 0:
        raise ReleaseError(f"{command[0]} failed:\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout


def try_wheel(wheel: Path, version: str) -> None:
    """Install the wheel into an empty environment, and train, save, load and measure there."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        venv.create(place / "env", with_pip=True)
        python = place / "env" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
        run(python, "-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", wheel, cwd=place)
        print(run(python, "-c", TRIAL.format(version=version), cwd=place))
        print(run(python.with_name("rankpolicy"), "doctor", cwd=place))


def release(version: str, *, is_trial: bool, checks: bool = True) -> None:
    """Make the release.

    Parameters
    ----------
    version
        Its number.
    is_trial
        Put everything back at the end.
    checks
        Whether to run ``make check`` and ``make test`` first.
    """
    if run("git", "status", "--porcelain").strip():
        raise ReleaseError("the checkout must be clean: commit or remove what is not committed.")
    kept = {file: file.read_text(encoding="utf-8") for file in (VERSION_FILE, CITATION)}
    old = re.search(r'__version__ = "([^"]+)"', kept[VERSION_FILE])
    assert old is not None
    check_version(version, old[1], tags=run("git", "tag").split())
    section_of(CHANGELOG.read_text(encoding="utf-8"), version)
    if checks:
        run("make", "check")
        run("make", "test")
    is_done = False
    try:
        VERSION_FILE.write_text(with_version(kept[VERSION_FILE], r'^__version__ = "([^"]+)"', version), "utf-8")
        CITATION.write_text(with_version(kept[CITATION], r"^version: (\S+)$", version), "utf-8")
        with tempfile.TemporaryDirectory() as built:
            run(sys.executable, "-m", "build", "--outdir", built)
            try_wheel(next(Path(built).glob("*.whl")), version)
            if not is_trial:
                (ROOT / "dist").mkdir(exist_ok=True)
                for file in Path(built).iterdir():
                    (ROOT / "dist" / file.name).write_bytes(file.read_bytes())
        is_done = True
    finally:
        if is_trial or not is_done:
            for file, text in kept.items():
                file.write_text(text, "utf-8")
    if is_trial:
        print(f"{version} can be released.")
        return
    if run("git", "status", "--porcelain").strip():
        run("git", "commit", "--all", "--message", f"Version {version}")
    run("git", "tag", "--annotate", f"v{version}", "--message", f"Version {version}")
    print(f"v{version} is tagged here, its files are in dist/. To publish: git push --follow-tags, then upload dist/.")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version", help="Number of the release, such as 0.3.0.")
    parser.add_argument("--trial", action="store_true", help="Neither commit nor tag; put the version back.")
    parser.add_argument("--no-checks", action="store_true", help="Leave out make check and make test.")
    arguments = parser.parse_args()
    try:
        release(arguments.version, is_trial=arguments.trial, checks=not arguments.no_checks)
    except ReleaseError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
