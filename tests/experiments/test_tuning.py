import json

import numpy as np
import polars
import pytest

import rankpolicy as rp
from rankpolicy.executors import Executor, Processes
from rankpolicy.experiments import Between, default_space
from rankpolicy.experiments.tuning import tune as tuning
from rankpolicy.experiments.tuning.space import checked_space, to_parameters, to_settings
from rankpolicy.experiments.tuning.trial import cutoffs, rungs
from rankpolicy.reports import RunRecord
from rankpolicy.reports.tuning_report import tuning_page

DATA = rp.data.make_ranking(60, items_per_query=8, num_features=6, num_informative=3)
TRAIN, VALID = DATA[:40], DATA[40:]
TREES = rp.LambdaMART(num_trees=30, min_items_in_leaf=5)
SPACE = {"num_leaves": Between(3, 31, log=True), "learning_rate": Between(0.01, 0.5, log=True), "l2": [0.0, 1.0]}


def search(**changes):
    return rp.tune(TREES, SPACE, TRAIN, valid=VALID, progress=False, **{"num_trials": 14} | changes)


def told(tuned):
    """What must not depend on how a search was run: everything but the time it took."""
    return [(trial.number, trial.settings, trial.seed, trial.state, trial.score, trial.curve) for trial in tuned.trials]


@pytest.fixture(scope="module")
def found():
    return search()


def test_the_best_trial_is_kept_and_fitted_again_with_its_seed(found):
    best = found.trials[found.best_trial]
    assert best.score == max(trial.score for trial in found.trials)
    assert found.ranker.best_score_ == best.score
    assert found.ranker.get_params()["random_state"] == best.seed
    assert {name: found.ranker.get_params()[name] for name in SPACE} == best.settings
    assert found.best_so_far[-1] == best.score
    assert not TREES.is_fitted


def test_trial_0_is_the_ranker_as_given_and_every_other_has_its_own_seed(found):
    alone = rp.LambdaMART(num_trees=30, min_items_in_leaf=5).fit(TRAIN, valid=VALID, progress=False)
    assert found.trials[0].score == alone.best_score_
    assert found.trials[0].settings == {"num_leaves": 15, "learning_rate": 0.05, "l2": 0.0}
    assert len({trial.seed for trial in found.trials}) == len(found.trials)


def test_trials_stay_in_the_space(found):
    for trial in found.trials:
        assert 3 <= trial.settings["num_leaves"] <= 31
        assert isinstance(trial.settings["num_leaves"], int)
        assert 0.01 <= trial.settings["learning_rate"] <= 0.5
        assert trial.settings["l2"] in (0.0, 1.0)


def test_a_trial_is_stopped_where_earlier_generations_were_better(found):
    stopped = [trial for trial in found.trials if trial.state == "stopped"]
    assert stopped
    for trial in stopped:
        generation = trial.number // tuning.GENERATION * tuning.GENERATION
        earlier = [other.curve for other in found.trials[:generation]]
        cutoff = cutoffs(earlier, 30)[len(trial.curve)]
        assert trial.score == max(trial.curve) < cutoff
    assert all(trial.state == "complete" for trial in search(scheduler="none", num_trials=8).trials)


def test_rungs_and_cutoffs_by_hand():
    assert rungs(1000) == (38, 112, 334)
    curves = [[0.1], [0.2, 0.9], [0.3, 0.4, 0.5], [0.6, 0.1], [0.0, 0.0], [0.5, 0.5]]
    assert cutoffs(curves, 9) == {1: 0.5, 3: 0.6}  # the second best of six; what ended earlier counts with its best
    assert cutoffs(curves[:2], 9) == {}


@pytest.mark.parametrize("executor", [Processes(2), "threads"])
def test_the_result_does_not_depend_on_the_executor(found, executor):
    assert told(search(executor=executor)) == told(found)


class InterruptedSearchError(Exception):
    pass


@pytest.mark.parametrize("after", [1, 7, 9])
def test_an_interrupted_search_continues_as_if_nothing_had_happened(found, tmp_path, after):
    study = tmp_path / "study.jsonl"
    ended = []

    def interrupt(trial):
        ended.append(trial)
        if len(ended) == after:
            raise InterruptedSearchError

    with pytest.raises(InterruptedSearchError):
        search(study=study, report_trial=interrupt)
    with open(study, "ab") as file:
        file.write(b'{"op_code": 4, "cut sh')  # a line that the process did not finish
    again = []
    assert told(search(study=study, report_trial=again.append)) == told(found)
    assert [trial.number for trial in again] == list(range(after, 14))


def test_a_study_takes_more_trials_and_refuses_another_search(found, tmp_path):
    study = tmp_path / "study.jsonl"
    search(study=study, num_trials=12)
    assert told(search(study=study)) == told(found)
    with pytest.raises(rp.RankPolicyError, match=r"is the study of another search \(not the same: random_state\)"):
        search(study=study, random_state=1)
    study.write_text("label,qid\n")
    with pytest.raises(rp.RankPolicyError, match="is no study file"):
        search(study=study)


def test_a_trial_that_the_ranker_refuses_is_a_failed_trial():
    space = {"model__hidden": [(4,), ()], "model__dropout": [0.3, 0.1]}
    ranker = rp.PGRank(epochs=1, num_networks=1, model=rp.models.MLP(hidden=(4,)))
    tuned = rp.tune(ranker, space, TRAIN, valid=VALID, num_trials=14, progress=False)
    failed = [trial for trial in tuned.trials if trial.state == "failed"]
    assert failed
    assert all(trial.settings == {"model__hidden": (), "model__dropout": 0.1} for trial in failed)
    assert all(trial.score is None and trial.error for trial in failed)
    assert tuned.trials[tuned.best_trial].score is not None


def test_a_ranker_outside_the_space_is_trial_0_all_the_same():
    tuned = rp.tune(TREES, {"num_leaves": [3, 4]}, TRAIN, valid=VALID, num_trials=5, progress=False)
    assert tuned.trials[0].settings == {"num_leaves": 15}
    assert {trial.settings["num_leaves"] for trial in tuned.trials[1:]} <= {3, 4}


def test_networks_are_stopped_by_epoch_and_settings_of_the_model_are_searched():
    space = default_space(rp.PGRank(model="mlp"))
    assert {"learning_rate", "model__hidden", "model__dropout", "scaling"} <= set(space)
    assert "model__hidden" not in default_space(rp.PGRank(model="linear"))
    ranker = rp.PGRank(epochs=9, num_networks=1, model=rp.models.MLP(hidden=(4,)))
    space = {"learning_rate": Between(1e-5, 0.1, log=True), "model__hidden": [(4,), (4, 4)]}
    tuned = rp.tune(ranker, space, TRAIN, valid=VALID, num_trials=12, progress=False)
    assert {len(trial.curve) for trial in tuned.trials if trial.state == "stopped"} <= {1, 3}
    assert any(trial.state == "stopped" for trial in tuned.trials)


def test_choices_of_any_kind_survive_the_way_through_the_study():
    space = checked_space(rp.PGRank(), {"model__hidden": [[32], (64, 64)], "patience": [None, 5]})
    settings = {"model__hidden": (64, 64), "patience": None}
    parameters = to_parameters(space, settings)
    json.dumps(parameters)
    assert to_settings(space, parameters) == settings
    assert to_parameters(space, settings | {"patience": 6}) is None


def test_as_frame_and_dict(found):
    frame = found.to_frame()
    assert isinstance(frame, polars.DataFrame)
    assert frame["score"].to_list() == [trial.score for trial in found.trials]
    assert set(SPACE) <= set(frame.columns)
    document = json.loads(json.dumps(found.to_dict()))
    assert document["score"] == found.score
    assert document["score_as_given"] == found.trials[0].score
    assert set(found.importance) == set(SPACE)
    assert np.isclose(sum(found.importance.values()), 1)


@pytest.mark.parametrize(
    ("space", "message"),
    [
        ({}, "at least one setting"),
        ({"num_leafs": [3]}, "num_leafs"),
        ({"num_leaves": 3}, "must be Between"),
        ({"num_leaves": "345"}, "must be Between"),
        ({"num_leaves": [3, 3]}, "different values"),
        ({"num_leaves": Between(1, 5)}, "num_leaves"),
        ({"random_state": [1, 2]}, "must not hold random_state"),
    ],
)
def test_a_space_that_the_ranker_does_not_have_is_refused_before_any_fit(space, message):
    with pytest.raises(rp.RankPolicyError, match=message):
        rp.tune(TREES, space, TRAIN, valid=VALID)


@pytest.mark.parametrize(
    ("low", "high", "log"), [(2, 1, False), (0, 1, True), (float("nan"), 1, False), ("a", 1, False)]
)
def test_a_range_needs_two_numbers_in_order(low, high, log):
    with pytest.raises(rp.RankPolicyError, match="Between"):
        Between(low, high, log=log)


def test_a_scheduler_and_a_study_in_a_wrong_place_are_refused(tmp_path):
    with pytest.raises(rp.RankPolicyError, match="Unknown scheduler 'hyperband'"):
        search(scheduler="hyperband")
    with pytest.raises(rp.RankPolicyError, match="is a directory"):
        search(study=tmp_path)
    with pytest.raises(rp.RankPolicyError, match="cannot write the study file"):
        search(study=tmp_path / "missing" / "study.jsonl")


def interrupt_at(number):
    def report(trial):
        if trial.number == number:
            raise KeyboardInterrupt

    return report


class LastFirst(Executor):
    """Trials end in another order than they were drawn, as they do in processes."""

    name = "last-first"

    def as_finished(self, function, tasks):
        for number in reversed(range(len(tasks))):
            yield number, function(tasks[number])


def test_a_study_with_gaps_may_be_asked_for_fewer_trials(tmp_path):
    study = tmp_path / "study.jsonl"
    best = search(num_trials=6, random_state=4).best
    assert best.number > 1
    with pytest.raises(KeyboardInterrupt):
        search(
            study=study,
            num_trials=6,
            random_state=4,
            executor=LastFirst(1),
            report_trial=interrupt_at(best.number),
        )
    fewer = search(study=study, num_trials=1, random_state=4)
    assert [trial.number for trial in fewer.trials] == [0, *range(best.number, 6)]
    assert (fewer.best.number, fewer.score) == (best.number, best.score)
    run = RunRecord(command="rankpolicy tune", seed=4, data={}, started="2026", duration_seconds=1.0)
    assert f"Trial {best.number} had" in tuning_page(fewer, run, title="Tuning", lead="A search.")


def test_two_searches_at_once_on_one_study_are_refused(tmp_path):
    study = tmp_path / "study.jsonl"

    def start_another(trial):
        with pytest.raises(rp.RankPolicyError, match=r"another search is running on .*study\.jsonl"):
            search(study=study, num_trials=2)

    assert len(search(study=study, num_trials=2, report_trial=start_another).trials) == 2
    assert len(search(study=study, num_trials=3).trials) == 3


@pytest.mark.parametrize("content", ['{"a": 1}\n', '{"op_code": 99}\n', '{"op_code": 4}\n', "[1]\n"])
def test_lines_of_json_that_are_no_study_are_refused_and_kept(content, tmp_path):
    study = tmp_path / "study.jsonl"
    study.write_text(content)
    with pytest.raises(rp.RankPolicyError, match=r"study\.jsonl is no study file, or is damaged"):
        search(study=study, num_trials=1)
    assert study.read_text() == content


def test_a_search_ends_when_no_trial_of_the_first_generation_can_be_fitted():
    numbers = []
    narrow = rp.data.make_ranking(5, items_per_query=8, num_features=5, num_informative=3)
    with pytest.raises(rp.RankPolicyError, match="no trial could be fitted"):
        rp.tune(
            TREES, SPACE, TRAIN, valid=narrow, num_trials=30, report_trial=lambda trial: numbers.append(trial.number)
        )
    assert numbers == list(range(tuning.GENERATION))
