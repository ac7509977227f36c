"""Rankers in the tools of others: PyTerrier, ir_datasets, the Hugging Face Hub and MLflow.

Each needs the package of its name. ``PGRank`` and the others are learners of ``pt.ltr.apply_learned_model(ranker, form="ltr")`` as they
are, and metrics may be measures of ir_measures; what needs more than that stands here.
"""

from typing import TYPE_CHECKING

from rankpolicy.optional import lazy_imports

if TYPE_CHECKING:
    from rankpolicy.integrations.hugging_face import (
        from_pretrained as from_pretrained,
        save_pretrained as save_pretrained,
    )
    from rankpolicy.integrations.ir_datasets import from_ir_datasets as from_ir_datasets
    from rankpolicy.integrations.mlflow_flavour import (
        load_model as load_model,
        log_model as log_model,
        save_model as save_model,
    )
    from rankpolicy.integrations.pyterrier import text_transformer as text_transformer

__getattr__, __dir__, __all__ = lazy_imports(__name__, __file__)
