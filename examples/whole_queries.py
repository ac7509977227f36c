# %% [markdown]
# # Networks that look at whole queries
#
# The score of an item depends on the items it is ranked with, on data where the difference between items counts.

# %%
import rankpolicy as rp

data = rp.data.make_ranking(
    500, items_per_query=(10, 20), num_features=2, num_informative=2, noise=0.2, query_shift=3.0
)
train, valid, test = rp.split_queries(data, (0.6, 0.2, 0.2))

# %% [markdown]
# Three networks that see more and more of the query:

# %%
for model in (
    rp.models.MLP(),  # every item on its own
    rp.models.MLP(query_context="mean"),  # and its difference from the mean of the query
    rp.models.ListTransformer(),  # attention to all items of the query
):
    ranker = rp.PGRank(model=model, num_networks=1, epochs=20).fit(train, valid=valid)
    print(f"NDCG@10 {ranker.score(test):.3f}  {model}")
