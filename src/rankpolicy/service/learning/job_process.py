"""Jobs in a process of their own: ``python -m rankpolicy.service.learning.job_process`` reads a job from stdin and writes what it found."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from typing import Any

from rankpolicy.service.log.writer import module_command, module_environment
from rankpolicy.types import RankPolicyError

LONGEST = 3_600.0  # seconds
_POLITE = 10  # how much a job stands back behind the service


def run_job(
    job: dict[str, Any], *, started: Callable[[subprocess.Popen[bytes]], None] = lambda process: None
) -> dict[str, Any]:
    """Have a job done by another process, and wait for it."""
    command, pipe = module_command(__name__), subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=module_environment()) as process:
        started(process)
        try:
            out, errors = process.communicate(json.dumps(job).encode(), LONGEST)
        except subprocess.TimeoutExpired:
            process.kill()
            raise RankPolicyError(f"the job took longer than {LONGEST:g} seconds and was ended.") from None
    return _answer(out, errors, process.returncode)


def _answer(out: bytes, errors: bytes, status: int | None) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = json.loads(out.decode().rstrip().rpartition("\n")[2])
    except ValueError:
        last = errors.decode("utf-8", "replace").strip().rpartition("\n")[2][:300]
        raise RuntimeError(f"a job ended without an answer (status {status}): {last}") from None
    if "error" in answer:
        raise RankPolicyError(str(answer["error"]))
    result: dict[str, Any] = answer["found"]
    return result


def done(job: dict[str, Any]) -> dict[str, Any]:
    """Do a job here."""
    if job["job"] == "check":
        from rankpolicy.service.learning.retrain_settings import Retrain

        for table in job["wanted"]:
            Retrain(**table).check_method()
        return {}
    import msgspec

    from rankpolicy.service.domain.clock import Clock
    from rankpolicy.service.domain.messages import Evaluate
    from rankpolicy.service.log import open_store

    with closing(open_store(job["db"], role="keys")) as store:
        now = Clock(not_before=store.last_stamp()).now()
        if job["job"] == "retrain":
            from rankpolicy.service.learning.retrain import retrain
            from rankpolicy.service.learning.retrain_settings import Retrain

            return retrain(store, Retrain(**job["wanted"]), now=now, author=job["author"])
        from rankpolicy.service.learning.evaluation import evaluate, note_evaluation

        document = evaluate(store, msgspec.convert(job["wanted"], Evaluate), now=now)
        note_evaluation(store, document, author=job["author"], now=now)
        return document


def main() -> None:
    """Read a job from stdin, do it, and write what it found to stdout."""
    os.nice(_POLITE)
    try:
        answer = {"found": done(json.load(sys.stdin))}
    except RankPolicyError as error:
        answer = {"error": str(error)}  # type: ignore[dict-item]
    sys.stdout.write(json.dumps(answer, allow_nan=False) + "\n")


if __name__ == "__main__":
    main()
