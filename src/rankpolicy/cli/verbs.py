"""The verbs of the command line with their lines in the list of verbs.

Each is a function of the module of its name: ``sample-data`` is ``sample_data`` of cli/sample_data.py, ``clicks fit`` is ``fit`` of
cli/clicks/fit.py. The module has EXAMPLES; it is imported when the verb is run.
"""

from __future__ import annotations

VERBS: dict[str, str] = {
    "demo": "Learn and compare two methods on synthetic data.",
    "sample-data": "Write small synthetic files to try every verb on.",
    "train": "Learn a ranker and write it to a file.",
    "evaluate": "Measure a model on labelled data or clicks.",
    "predict": "Score the items of new data.",
    "explain": "Which features matter; why one item is above another.",
    "export": "Write a model as a file for a search engine, or ONNX.",
    "distil": "Make one ensemble of trees that scores as a model.",
    "tune": "Search for the best settings of a method.",
    "compare": "Learn and measure several methods on the same folds.",
    "tradeoff": "Utility against fairness of exposure, by method.",
    "loop": "From a click log to a model in a search engine.",
    "clicks": "Click models, position bias and judgments of a log.",
    "simulate": "Regret of bandits that rank for simulated users.",
    "serve": "Serve rankings over HTTP and learn from clicks.",
    "service": "Keys, versions, export and replay of a service.",
    "methods": "List methods, models, bandits ... and their settings.",
    "reproduce": "Run a table or figure of a paper again.",
    "doctor": "Show what is installed and which fast paths are on.",
}

CLICKS_VERBS: dict[str, str] = {
    "fit": "Fit click models to a log and measure them.",
    "bias": "Estimate how likely users examine each rank.",
    "judgments": "Rate items by their clicks, for OpenSearch.",
}

SERVICE_VERBS: dict[str, str] = {
    "key": "Make, list or revoke keys.",
    "promote": "Serve a model to all users or a share of them.",
    "rollback": "Return to the version before.",
    "export": "Write lists, propensities and clicks as Parquet.",
    "evaluate": "Off-policy value of a candidate on the log.",
    "retrain": "Learn a ranker from the log; promote it if better.",
    "delete": "Delete old lists and events; keep what was learned.",
    "backup": "Copy the database of a running service.",
    "replay": "Compute all states again and compare.",
}

# Verbs that have verbs, and the help of each.
GROUPS: dict[str, tuple[dict[str, str], str]] = {
    "clicks": (CLICKS_VERBS, "Fit click models to a log, and estimate the position bias in it."),
    "service": (
        SERVICE_VERBS,
        "Keys of a service, what it serves, what its log says about candidates, and proof of what it learned.",
    ),
}
