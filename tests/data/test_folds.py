import gzip

import pytest

from rankpolicy.data import read_folds
from rankpolicy.types import RankPolicyError

LINE = "1 qid:1 1:1 2:2\n"


def lay_out(root, fold, **texts):
    (root / fold).mkdir(parents=True)
    for part, text in texts.items():
        (root / fold / f"{part}.txt").write_text(text)


def test_folds_in_natural_order_with_one_width(tmp_path):
    lay_out(tmp_path, "Fold10", train=LINE, vali=LINE, test=LINE)
    lay_out(tmp_path, "Fold2", train=LINE, valid="1 qid:9 4:1\n")
    (tmp_path / "Fold2" / "test.txt.gz").write_bytes(gzip.compress(b"1 qid:8 1:1\n"))
    folds = read_folds(tmp_path)
    assert [fold.name for fold in folds] == ["Fold2", "Fold10"]
    assert {part.num_features for fold in folds for part in (fold.train, fold.valid, fold.test)} == {4}
    assert folds[0].valid.query_ids.tolist() == ["9"]
    assert folds[0].test.features.tolist() == [[1, 0, 0, 0]]


def test_parts_go_around(tmp_path):
    for part in range(1, 6):
        (tmp_path / f"S{part}.txt").write_text(f"1 qid:{part} {part}:2\n")
    folds = read_folds(tmp_path)
    assert [fold.name for fold in folds] == ["Fold1", "Fold2", "Fold3", "Fold4", "Fold5"]
    ids = [[part.query_ids.tolist() for part in (fold.train, fold.valid, fold.test)] for fold in folds]
    assert ids[0] == [["1", "2", "3"], ["4"], ["5"]]
    assert ids[3] == [["4", "5", "1"], ["2"], ["3"]]
    assert {part.num_features for fold in folds for part in (fold.train, fold.valid, fold.test)} == {5}
    (tmp_path / "S3.txt").unlink()
    with pytest.raises(RankPolicyError, match=r"must hold S3\.txt or"):
        read_folds(tmp_path)


def test_errors(tmp_path):
    with pytest.raises(RankPolicyError, match="must hold directories Fold1, Fold2"):
        read_folds(tmp_path)
    with pytest.raises(RankPolicyError, match=r"must be a directory .* it is not there"):
        read_folds(tmp_path / "nowhere")
    lay_out(tmp_path, "Fold1", train=LINE, test=LINE)
    with pytest.raises(RankPolicyError, match=r"Fold1 must hold vali\.txt or .*valid\.txt\.zst; it holds none"):
        read_folds(tmp_path)
