import hashlib
from dataclasses import replace

import numpy as np

from rankpolicy.data import from_arrays, read_letor, write_letor
from rankpolicy.data.fingerprints import fingerprint, sha256_of_file


def test_sha256_of_file(tmp_path):
    (tmp_path / "file").write_bytes(b"abc")
    assert sha256_of_file(tmp_path / "file") == hashlib.sha256(b"abc").hexdigest()


def test_fingerprint_depends_on_content_alone(tmp_path):
    dataset = from_arrays([[1.0], [2.0], [3.0]], [0, 1, 0], qid=["a", "b", "a"], item_ids=["x", "y", "z"])
    write_letor(dataset, tmp_path / "data.txt")
    assert fingerprint(read_letor(tmp_path / "data.txt")) == fingerprint(dataset)
    wider = replace(dataset, item_ids_by_query=dataset.item_ids_by_query.astype("U50"))
    assert fingerprint(wider) == fingerprint(dataset)
    others = [
        replace(dataset, features_by_query=dataset.features_by_query + 1),
        replace(dataset, labels_by_query=dataset.labels_by_query + 1),
        replace(dataset, query_ids=np.array(["a", "c"])),
        replace(dataset, item_ids_by_query=None),
        replace(dataset, groups_by_query=np.array([0, 0, 1])),
        replace(dataset, feature_names=("f",)),
    ]
    assert len({fingerprint(other) for other in [dataset, *others]}) == 7
