"""What the wheel must do in an environment that has its required packages only: `python scripts/wheel_trial.py`, far from the checkout.

It learns, measures, saves and simulates with torch absent, and then serves one list if the extra `serve` is installed.
"""

from __future__ import annotations

import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import rankpolicy as rp


def try_rankers(folder: Path) -> None:
    """Trees and a linear policy learn from a file, and rank the same after they were saved and loaded."""
    rp.data.write_letor(rp.make_web_search(60, random_state=0), folder / "train.txt")
    train, valid = rp.split_queries(rp.read_letor(folder / "train.txt"), (0.7, 0.3), random_state=0)
    for ranker in (rp.LambdaMART(num_trees=20), rp.PGRank(model="linear", epochs=50)):
        ranker.fit(train, valid=valid, progress=False)
        ranker.save(folder / "model.rp")
        loaded = rp.load(folder / "model.rp")
        assert (loaded.predict(valid) == ranker.predict(valid)).all()
        table = rp.evaluate(loaded, valid, ["ndcg@10", "map"])
        assert table.means["ndcg@10"] > 0.4, table
        print(f"{ranker.name}: ndcg@10 {table.means['ndcg@10']:.4f}")
    exposure = rp.PGRank(model="linear", epochs=1).fit(train, progress=False).exposure(valid)
    assert np.isfinite(exposure).all()


def try_clicks() -> None:
    """A click model finds its parameters again, and a bandit learns from simulated clicks."""
    users = rp.clicks.make_click_model("pbm", random_state=0)
    log = rp.clicks.make_click_log(users, 2000, random_state=1)
    model = rp.fit_click_model("pbm", log)
    assert 0 < model.perplexity(log).overall < 2
    bandit = rp.bandits.DcmTS(num_items=5, cutoff=2)
    for _ in range(200):
        ranking = bandit.rank()
        bandit.learn(ranking, [int(item == 3) for item in ranking])
    assert 3 in bandit.rank()
    print("click model and bandit: learned")


def try_service(folder: Path) -> None:
    """The service answers one list and writes it to its log."""
    import asyncio

    from rankpolicy.service import RankingService, ServiceConfig
    from rankpolicy.service.domain.messages import Item, RankRequest

    async def serve_one() -> None:
        service = RankingService(ServiceConfig(db=str(folder / "service.db")))
        service.start()
        answer = await service.rank(RankRequest(query="q", items=[Item(id="a"), Item(id="b")]))
        assert {item.id for item in answer.items} == {"a", "b"}
        service.stop()

    asyncio.run(serve_one())
    print("service: one list served")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        try_rankers(Path(name))
        try_clicks()
        if find_spec("apsw"):
            try_service(Path(name))
    assert find_spec("torch") is None or "torch" not in sys.modules, "torch was loaded"
    print(f"rankpolicy {rp.__version__} works without torch")
