# %% [markdown]
# # A reward of your own
#
# Any function from rankings to one value per ranking.

# %%
import numpy as np

import rankpolicy as rp


def top_heavy(rankings, labels, mask):
    """Half NDCG@5, half the share of relevant items among the first three."""
    return 0.5 * rp.metrics.ndcg(rankings, labels, mask, cutoff=5) + 0.5 * rp.metrics.p(
        rankings, labels, mask, cutoff=3
    )


# %% [markdown]
# The same reward, once as a function and once as an expression that the compiled kernel knows:

# %%
train, valid, test = rp.split_queries(rp.make_web_search(150, random_state=1), (0.6, 0.2, 0.2))
own = rp.PGRank(reward=top_heavy, valid_metric=top_heavy, num_networks=1, epochs=10)
mixed = rp.PGRank(reward="mean(ndcg@5, p@3)", valid_metric="mean(ndcg@5, p@3)", num_networks=1, epochs=10)
for ranker in (own, mixed):
    ranker.fit(train, valid=valid)
    print(ranker, rp.evaluate(ranker, test, ["ndcg@5", "p@3"]).means)

# %% [markdown]
# The policy that was learned, for one query:

# %%
policy = own.policy(test[:1])
print("probability of the best ranking's first three items:", np.exp(policy.log_prob(policy.mode(), cutoff=3)).item())
assert np.isfinite(policy.log_prob(policy.mode())).all()
