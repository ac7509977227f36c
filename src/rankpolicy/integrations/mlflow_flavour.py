"""Rankers in MLflow: a flavour that is loaded as the ranker itself, or as a pyfunc whose predictions are scores."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rankpolicy.declarations.arguments import checked_kinds
from rankpolicy.loading import load
from rankpolicy.optional import require
from rankpolicy.rankers import Ranker
from rankpolicy.types import RankPolicyError
from rankpolicy.version import __version__

FLAVOR_NAME = "rankpolicy"
_FILE = "model.rp"


@checked_kinds
def save_model(
    ranker: Ranker, path: str | Path, *, signature: Any = None, input_example: Any = None, mlflow_model: Any = None
) -> None:
    """Write a fitted ranker as a model of MLflow: a folder that ``load_model`` and ``mlflow.pyfunc.load_model`` read.

    Parameters
    ----------
    ranker
        A fitted ranker.
    path
        The folder, which must not exist yet.
    signature
        A ``ModelSignature``; by default the named features as numbers and one score per row; None where a ranker reads more.
    input_example
        Rows to show what the model reads.
    mlflow_model
        The ``mlflow.models.Model`` to write into, which ``log_model`` gives.
    """
    ranker._require_fitted()
    mlflow: Any = require("mlflow", "save_model")
    pyfunc: Any = require("mlflow.pyfunc", "save_model")
    folder = Path(path)
    if folder.exists():
        raise RankPolicyError(f"{folder} must not exist yet. Name another folder, or remove it.")
    folder.mkdir(parents=True)
    ranker.save(folder / _FILE)
    model = mlflow.models.Model() if mlflow_model is None else mlflow_model
    model.signature = signature or _signature(ranker)
    if input_example is not None:
        require("mlflow.models.utils", "save_model")._save_example(model, input_example, str(folder))
    pyfunc.add_to_model(model, loader_module=__name__, data=_FILE)
    model.add_flavor(FLAVOR_NAME, data=_FILE, method=ranker.name, version=__version__)
    model.save(str(folder / "MLmodel"))
    (folder / "requirements.txt").write_text(f"rankpolicy=={__version__}\n")


@checked_kinds
def log_model(ranker: Ranker, name: str = "model", **options: Any) -> Any:
    """Log a fitted ranker to the active run of MLflow; what ``Model.log`` returns.

    Parameters
    ----------
    ranker
        A fitted ranker.
    name
        The name of the model in the run.
    options
        ``signature``, ``input_example``, ``registered_model_name`` and others of ``mlflow.models.Model.log``.
    """
    import sys

    mlflow: Any = require("mlflow", "log_model")
    return mlflow.models.Model.log(None, name=name, flavor=sys.modules[__name__], ranker=ranker, **options)


@checked_kinds
def load_model(model_uri: str | Path) -> Ranker:
    """The ranker of a model of MLflow.

    Parameters
    ----------
    model_uri
        A folder, or what MLflow names models by, such as "runs:/RUN/model" or "models:/NAME/1".
    """
    artifacts: Any = require("mlflow.artifacts", "load_model")
    local = Path(model_uri)
    folder = local if local.is_dir() else Path(artifacts.download_artifacts(artifact_uri=str(model_uri)))
    return _load_pyfunc(str(folder / _FILE)).ranker


class _Scores:
    """What MLflow calls ``predict`` of: one score per row; a column qid of a frame names queries."""

    def __init__(self, ranker: Ranker) -> None:
        self.ranker = ranker

    def predict(self, rows: Any, params: dict[str, Any] | None = None) -> Any:
        """Scores (row,)."""
        has_queries = "qid" in getattr(rows, "columns", ())
        return self.ranker.predict(rows, qid="qid") if has_queries else self.ranker.predict(rows)


def _load_pyfunc(path: str) -> _Scores:
    """MLflow's hook: the model of the file that ``save_model`` wrote."""
    ranker = load(path)
    assert isinstance(ranker, Ranker), "save_model wrote a ranker"
    return _Scores(ranker)


def _signature(ranker: Ranker) -> Any:
    types: Any = require("mlflow.types", "A signature")
    signatures: Any = require("mlflow.models.signature", "A signature")
    # MLflow drops columns that a signature does not name, and so the queries of rankers that read whole queries.
    if ranker._reads_texts or ranker._needs_queries or not ranker.feature_names_ or ranker.categories_:
        return None
    columns = [types.ColSpec("double", name, required=False) for name in ranker.feature_names_]
    return signatures.ModelSignature(inputs=types.Schema(columns), outputs=types.Schema([types.ColSpec("double")]))
