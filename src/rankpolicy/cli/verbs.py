"""The verbs of the command line: one line for each, one file for each."""

from __future__ import annotations

from dataclasses import dataclass

_CLI = "rankpolicy.cli"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb:
    """Where a verb is defined, and its line in the list of verbs.

    Parameters
    ----------
    place
        ``"module:function"``, the function that typer makes a command of; its module has EXAMPLES. Or a ``typer.Typer`` with more verbs.
    summary
        One short line, known without importing the module.
    """

    place: str
    summary: str


VERBS: dict[str, Verb] = {
    "demo": Verb(place=f"{_CLI}.demo:demo", summary="Learn and compare two methods on synthetic data."),
    "sample-data": Verb(
        place=f"{_CLI}.sample_data:sample_data", summary="Write small synthetic files to try every verb on."
    ),
    "train": Verb(place=f"{_CLI}.train:train", summary="Learn a ranker and write it to a file."),
    "evaluate": Verb(place=f"{_CLI}.evaluate:evaluate", summary="Measure a model on labelled data or clicks."),
    "predict": Verb(place=f"{_CLI}.predict:predict", summary="Score the items of new data."),
    "explain": Verb(place=f"{_CLI}.explain:explain", summary="Which features matter; why one item is above another."),
    "export": Verb(place=f"{_CLI}.export:export", summary="Write a model as an ONNX file for other programs."),
    "tune": Verb(place=f"{_CLI}.tune:tune", summary="Search for the best settings of a method."),
    "compare": Verb(place=f"{_CLI}.compare:compare", summary="Learn and measure several methods on the same folds."),
    "tradeoff": Verb(place=f"{_CLI}.tradeoff:tradeoff", summary="Utility against fairness of exposure, by method."),
    "clicks": Verb(place=f"{_CLI}.clicks:app", summary="Fit click models to a log; estimate position bias."),
    "simulate": Verb(place=f"{_CLI}.simulate:simulate", summary="Regret of bandits that rank for simulated users."),
    "serve": Verb(place=f"{_CLI}.serve:serve", summary="Serve rankings over HTTP and learn from clicks."),
    "service": Verb(place=f"{_CLI}.service:app", summary="Keys, versions, export and replay of a service."),
    "methods": Verb(place=f"{_CLI}.methods:methods", summary="List methods, models, bandits ... and their settings."),
    "reproduce": Verb(place=f"{_CLI}.reproduce:reproduce", summary="Run a table or figure of a paper again."),
    "doctor": Verb(place=f"{_CLI}.doctor:doctor", summary="Show what is installed and which fast paths are on."),
}

CLICKS_VERBS: dict[str, Verb] = {
    "fit": Verb(place=f"{_CLI}.clicks.fit:fit", summary="Fit click models to a log and measure them."),
    "bias": Verb(place=f"{_CLI}.clicks.bias:bias", summary="Estimate how likely users examine each rank."),
}

SERVICE_VERBS: dict[str, Verb] = {
    "key": Verb(place=f"{_CLI}.service.key:key", summary="Make, list or revoke keys."),
    "promote": Verb(place=f"{_CLI}.service.promote:promote", summary="Serve a model to all users or a share of them."),
    "rollback": Verb(place=f"{_CLI}.service.rollback:rollback", summary="Return to the version before."),
    "export": Verb(place=f"{_CLI}.service.export:export", summary="Write lists, propensities and clicks as Parquet."),
    "evaluate": Verb(place=f"{_CLI}.service.evaluate:evaluate", summary="Off-policy value of a candidate on the log."),
    "retrain": Verb(
        place=f"{_CLI}.service.retrain:retrain", summary="Learn a ranker from the log; promote it if better."
    ),
    "delete": Verb(
        place=f"{_CLI}.service.delete:delete", summary="Delete old lists and events; keep what was learned."
    ),
    "backup": Verb(place=f"{_CLI}.service.backup:backup", summary="Copy the database of a running service."),
    "replay": Verb(place=f"{_CLI}.service.replay:replay", summary="Compute all states again and compare."),
}
