"""The option --columns of verbs that read click logs."""

import polars
import pytest

from tests.clicks.log.test_own_columns import COLUMNS, ROWS


@pytest.mark.parametrize("verb", [("bias", "--method", "em", "--resamples", "0"), ("fit", "--models", "gctr")])
def test_columns_are_an_option_of_every_verb_that_reads_a_log(rankpolicy, tmp_path, verb):
    rows = [
        (visit, "a", "xy"[rank ^ visit % 2], rank + 1, int(visit % 3 == rank)) for visit in range(8) for rank in (0, 1)
    ]
    polars.DataFrame(rows, schema=list(ROWS), orient="row").write_csv(tmp_path / "log.csv")
    columns = ",".join(f"{name}={column}" for name, column in COLUMNS.items())
    result = rankpolicy("clicks", verb[0], tmp_path / "log.csv", *verb[1:], "--columns", columns)
    assert result.status == 0, result.stderr
    refused = rankpolicy("clicks", verb[0], tmp_path / "log.csv", "--columns", "item")
    assert (refused.status, "item=shown_item,rank=pos" in " ".join(refused.stderr.split())) == (2, True)
