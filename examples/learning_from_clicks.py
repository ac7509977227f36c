# %% [markdown]
# # Learning from biased clicks
#
# Users examine the top of a list most, so a ranker that takes clicks as they are learns the order shown.

# %%
import numpy as np

import rankpolicy as rp

data = rp.make_web_search(300, random_state=0)
train, valid, test = rp.split_queries(data, (0.6, 0.2, 0.2))

# %% [markdown]
# A log as a search engine has it: two old rankers, made up here, and users who examine rank k with probability 1 / k.

# %%
generator = np.random.default_rng(0)
queries, lists, clicks = [], [], []
for _ in range(30_000):
    query = generator.integers(train.num_queries)
    items = np.arange(train.offsets[query], train.offsets[query + 1])
    shown = items[np.argsort(-train.features[items, generator.integers(2)], kind="stable")][:10]
    attractive = 0.1 + 0.9 * train.labels[shown] / train.labels.max()
    examined = 1 / np.arange(1, len(shown) + 1)
    queries.append(train.query_ids[query])
    lists.append(train.item_ids[shown])
    clicks.append((generator.random(len(shown)) < examined * attractive).astype(int))
log = rp.clicks.log_from_lists(queries, lists, clicks)

# %% [markdown]
# How likely each rank is to be examined, estimated from the log:

# %%
bias = rp.estimate_position_bias(log, method="all-pairs")
print("estimated propensities:", bias.propensities.round(2))

# %% [markdown]
# The labels of the training data are made from the clicks; the validation data keep their own labels here.

# %%
settings = {"reward": "ndcg@10", "epochs": 30, "num_networks": 1}
for name, propensities in (("as they are", np.ones(10)), ("corrected", bias)):
    ranker = rp.PGRank(**settings).fit(rp.dataset_from_clicks(train, log, propensities), valid=valid)
    worth = ranker.click_report_["effective_sample_size"]
    ndcg = rp.evaluate(ranker, test, ["ndcg@10"]).means["ndcg@10"]
    print(f"clicks {name}: NDCG@10 {ndcg:.4f} ({ranker.click_report_['num_clicks']} clicks, worth {worth:.0f})")
labels = rp.PGRank(**settings).fit(train, valid=valid)
print(f"true labels: NDCG@10 {rp.evaluate(labels, test, ['ndcg@10']).means['ndcg@10']:.4f}")
