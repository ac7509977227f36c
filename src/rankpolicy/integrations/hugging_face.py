"""Rankers on the Hugging Face Hub: a folder with the model file and a model card, through ``huggingface_hub.ModelHubMixin``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rankpolicy.declarations.arguments import checked_kinds
from rankpolicy.loading import load
from rankpolicy.optional import require
from rankpolicy.rankers import Ranker
from rankpolicy.types import RankPolicyError

_FILE = "model.rp"
_CARD = """---
{{ card_data }}
---

# {{ method }}

A ranker of [rankpolicy](https://pypi.org/project/rankpolicy/): it orders the items of a query.

```python
from rankpolicy.integrations import from_pretrained

ranker = from_pretrained("{{ repo }}")
scores = ranker.predict(X)  # one per item, higher is better
```

{{ reads }}

Settings: `{{ settings }}`
"""


@checked_kinds
def save_pretrained(
    ranker: Ranker, folder: str | Path, *, repo_id: str | None = None, push_to_hub: bool = False
) -> Path:
    """Write a fitted ranker as a folder in the form of the Hugging Face Hub: model file, config and model card; the folder.

    Parameters
    ----------
    ranker
        A fitted ranker.
    folder
        The folder; it is made where it is missing.
    repo_id
        The repository, "user/name", named in the card.
    push_to_hub
        Whether to upload the folder there too.
    """
    ranker._require_fitted()
    reads = "It reads texts." if ranker._reads_texts else f"It reads {ranker.num_features_} features"
    names = f": {', '.join(ranker.feature_names_)}." if not ranker._reads_texts and ranker.feature_names_ else "."
    described = ranker.to_dict()
    card = {
        "method": type(ranker).__name__,
        "repo": repo_id or Path(folder).name,
        "reads": reads.removesuffix(".") + names,
        "settings": json.dumps(described["settings"]),
    }
    _hub_class()(ranker).save_pretrained(
        folder, config=described, repo_id=repo_id, push_to_hub=push_to_hub, model_card_kwargs=card
    )
    return Path(folder)


@checked_kinds
def from_pretrained(source: str | Path, *, revision: str | None = None) -> Ranker:
    """The ranker of a folder that ``save_pretrained`` wrote, or of a repository of the Hugging Face Hub.

    Parameters
    ----------
    source
        A folder, or the name of a repository, "user/name".
    revision
        A branch, tag or commit of the repository.
    """
    loaded: Any = _hub_class().from_pretrained(str(source), revision=revision)
    ranker: Ranker = loaded.ranker
    return ranker


def _hub_class() -> Any:
    """The mixin of the Hub around a ranker; a class of its own, because the package is optional."""
    hub: Any = require("huggingface_hub", "The Hugging Face Hub")

    class HubRanker(  # type: ignore[call-arg]
        hub.ModelHubMixin,  # type: ignore[misc]
        library_name="rankpolicy",
        pipeline_tag="text-ranking",
        tags=["learning-to-rank"],
        model_card_template=_CARD,
    ):
        def __init__(self, ranker: Ranker) -> None:
            self.ranker = ranker

        def _save_pretrained(self, save_directory: Path) -> None:
            self.ranker.save(save_directory / _FILE)

        @classmethod
        def _from_pretrained(cls, *, model_id: str, revision: str | None, **options: Any) -> Any:
            file = Path(model_id) / _FILE
            if not Path(model_id).is_dir():
                known = ("cache_dir", "force_download", "local_files_only", "token")
                given = {name: value for name, value in options.items() if name in known}
                file = Path(hub.hf_hub_download(model_id, _FILE, revision=revision, **given))
            ranker = load(file)
            if not isinstance(ranker, Ranker):
                raise RankPolicyError(f"{model_id} must hold a ranker; got {type(ranker).__name__}.")
            return cls(ranker)

    return HubRanker
