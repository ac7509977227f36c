"""The study file: what Optuna knows of the trials of a search, kept on disk after each of them."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from rankpolicy.experiments.tuning.space import Between, distributions, to_parameters, to_settings
from rankpolicy.experiments.tuning.trial import Trial
from rankpolicy.optional import require
from rankpolicy.types import RankPolicyError

_NAME, _PURPOSE, _OUTCOME, _AS_GIVEN = "rankpolicy", "purpose", "outcome", "as_given"


class Study:
    """The trials of one search; with a file, those of an earlier run are part of it.

    Settings are drawn by the tree-structured Parzen estimator (Bergstra et al. 2011; Falkner et al. 2018 for its multivariate form). What a
    trial draws depends on the seed, on its number and on the trials of earlier generations only, so a search that was interrupted ends as
    it would have without.
    """

    def __init__(
        self,
        space: Mapping[str, Between | tuple[Any, ...]],
        start_settings: Mapping[str, Any],
        *,
        purpose: dict[str, Any],
        seed: int,
        path: Path | None,
    ) -> None:
        self._optuna = require("optuna", "Tuning")
        self._space, self._given, self._seed = space, start_settings, seed
        self._distributions = distributions(space)
        self._lock = None if path is None else _locked(path)
        try:
            with _quiet(self._optuna):
                self._study = self._opened(path)
                purpose_of_file = self._study.user_attrs.get(_PURPOSE)
                if purpose_of_file is None:
                    self._study.set_user_attr(_PURPOSE, purpose)
                elif purpose_of_file != purpose:
                    changed = ", ".join(sorted(name for name in purpose if purpose_of_file.get(name) != purpose[name]))
                    raise RankPolicyError(
                        f"{path} is the study of another search (not the same: {changed}). Repeat the call that made it, or name "
                        "another file."
                    )
        except BaseException:
            self.close()
            raise

    def _opened(self, path: Path | None) -> Any:
        if path is None:
            return self._optuna.create_study(direction="maximize", study_name=_NAME)
        journal = require("optuna.storages.journal", "Tuning")
        try:
            if path.exists():
                _check_journal(path)
            storage = self._optuna.storages.JournalStorage(journal.JournalFileBackend(str(path)))
            return self._optuna.create_study(
                direction="maximize", study_name=_NAME, storage=storage, load_if_exists=True
            )
        except OSError as error:
            raise RankPolicyError(f"cannot write the study file {path}: {error.strerror or error}.") from None
        except RankPolicyError:
            raise
        except (KeyError, TypeError, ValueError, AssertionError):  # lines of JSON that Optuna did not write
            raise _damaged(path) from None

    def close(self) -> None:
        """Let other processes continue the search."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def finished(self) -> list[Trial]:
        """The trials that have ended, by number."""
        return [
            Trial(
                number=trial.number,
                settings=self._settings_of(trial),
                **trial.user_attrs[_OUTCOME] | {"curve": tuple(trial.user_attrs[_OUTCOME]["curve"])},
            )
            for trial in self._study.get_trials(deepcopy=False)
            if trial.state.is_finished() and _OUTCOME in trial.user_attrs
        ]

    def next_settings(self, numbers: Sequence[int]) -> dict[int, dict[str, Any]]:
        """The settings of these trials, all of one generation: drawn, or as they were drawn before an interruption."""
        with _quiet(self._optuna):
            trials = {trial.number: trial for trial in self._study.get_trials(deepcopy=False)}
            for number in numbers:
                if number not in trials:
                    self._draw(number)
            trials = {trial.number: trial for trial in self._study.get_trials(deepcopy=False)}
            return {
                number: self._settings_of(trials[number])
                for number in numbers
                if not trials[number].state.is_finished()
            }

    def _draw(self, number: int) -> None:
        self._study.sampler = self._optuna.samplers.TPESampler(
            seed=trial_seed(self._seed, number, of_sampler=True),
            multivariate=True,
            group=True,
            constant_liar=False,  # trials of the same generation are not known yet, whoever is first
            n_startup_trials=min(10, max(5, len(self._space) + 1)),
        )
        if number > 0:
            drawn = self._study.ask(self._distributions)
        else:
            parameters = to_parameters(self._space, self._given)
            if parameters is not None:
                self._study.enqueue_trial(parameters)
            drawn = self._study.ask({} if parameters is None else self._distributions)
            drawn.set_user_attr(_AS_GIVEN, True)
        assert drawn.number == number

    def _settings_of(self, trial: Any) -> dict[str, Any]:
        if trial.user_attrs.get(_AS_GIVEN):
            return dict(self._given)
        return to_settings(self._space, trial.params)

    def tell(self, trial: Trial) -> None:
        """Write down what came of a trial."""
        state = self._optuna.trial.TrialState
        with _quiet(self._optuna):
            frozen = self._study.get_trials(deepcopy=False)[trial.number]
            live = self._optuna.trial.Trial(self._study, frozen._trial_id)
            outcome = {name: value for name, value in asdict(trial).items() if name not in ("number", "settings")}
            live.set_user_attr(_OUTCOME, outcome)
            if trial.score is None:
                self._study.tell(trial.number, state=state.FAIL)
            elif trial.state == "stopped":
                live.report(trial.score, len(trial.curve))
                self._study.tell(trial.number, state=state.PRUNED)
            else:
                self._study.tell(trial.number, trial.score)

    def importance(self) -> dict[str, float] | None:
        """Share of the variance of scores that each setting explains, by functional ANOVA on a random forest; None without scikit-learn.

        A stopped trial counts with the score it had.
        """
        trials = [trial for trial in self._study.get_trials(deepcopy=False) if trial.params and trial.value is not None]
        scores = {trial.value for trial in trials}
        if len(trials) < 4 or len(scores) < 2:
            return None
        with _quiet(self._optuna):
            copy = self._optuna.create_study(direction="maximize")
            for trial in trials:
                copy.add_trial(
                    self._optuna.trial.create_trial(
                        params=trial.params, distributions=trial.distributions, value=trial.value
                    )
                )
            try:
                evaluator = self._optuna.importance.FanovaImportanceEvaluator(seed=self._seed)
                shares = self._optuna.importance.get_param_importances(copy, evaluator=evaluator)
            except ImportError:
                return None
        return {name: float(share) for name, share in shares.items()}


def trial_seed(seed: int, number: int, *, of_sampler: bool = False) -> int:
    """The seed of a trial, or of the draw of its settings."""
    return int(np.random.SeedSequence([seed, number, int(of_sampler)]).generate_state(1)[0] >> 1)


def _check_journal(path: Path) -> None:
    """Refuse a file that is no study, and cut off a last line that was not written to its end."""
    if path.is_dir():
        raise RankPolicyError(f"study must name a file; {path} is a directory. Name a file in it.")
    with open(path, "rb+") as file:
        num_intact_bytes = 0
        for line in file:
            try:
                entry = json.loads(line)
                is_entry = isinstance(entry, dict) and "op_code" in entry and line.endswith(b"\n")
            except ValueError:
                is_entry = False
            if not is_entry:
                next_byte = file.read(1)
                if num_intact_bytes == 0 or next_byte:
                    raise _damaged(path)
                file.truncate(num_intact_bytes)
                return
            num_intact_bytes += len(line)


def _damaged(path: Path) -> RankPolicyError:
    return RankPolicyError(f"{path} is no study file, or is damaged. Name another file for this search.")


def _locked(path: Path) -> int | None:
    """The study file, open and locked until it is closed or this process ends: two searches at once would draw the same trials."""
    if path.is_dir() or not hasattr(os, "O_CLOEXEC"):
        return None
    import fcntl

    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise RankPolicyError(f"cannot write the study file {path}: {error.strerror or error}.") from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise RankPolicyError(
            f"another search is running on {path}. Wait until it ends, or name another file."
        ) from None
    except OSError:  # a file system without locks
        os.close(handle)
        return None
    return handle


@contextmanager
def _quiet(optuna: Any) -> Iterator[None]:
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of its experimental options
            yield
    except OSError as error:
        raise RankPolicyError(f"cannot write the study file: {error.strerror or error}.") from None
    finally:
        optuna.logging.set_verbosity(before)
