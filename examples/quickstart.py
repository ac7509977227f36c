# %% [markdown]
# # A first ranking policy
#
# Learn a ranking policy, measure it, look at its rankings, save it. The README shows these lines.

# %%
import rankpolicy as rp

data = rp.make_web_search(200, random_state=0)  # or rp.read_letor("train.txt"), rp.read_parquet, rp.from_frame
train, valid, test = rp.split_queries(data, (0.6, 0.2, 0.2))

ranker = rp.PGRank(reward="ndcg@10", epochs=30).fit(train, valid=valid)
print(rp.evaluate(ranker, test, metrics=["ndcg@10", "map", "err@10"]))

order = ranker.rank(test)[5]  # rows of the sixth query, best first
rankings = ranker.sample(test, num_samples=3, random_state=0)[5]  # three draws from its policy
print("best first:", order[:5], "three draws:", rankings[:, :5].tolist())

ranker.save("model.rp")
assert (rp.load("model.rp").predict(test) == ranker.predict(test)).all()
