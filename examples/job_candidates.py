# %% [markdown]
# # Ten job candidates
#
# They have nearly the same relevance: what sorting does to the exposure of each group, and what a fair policy costs.

# %%
import rankpolicy as rp
from rankpolicy.evaluation.policy_value import Exposer, SortedPolicy, policy_value

candidates = rp.data.make_job_candidates()

# %% [markdown]
# What a policy is worth, and the exposure of each group:


# %%
def show(name: str, policy: Exposer) -> None:
    value = policy_value(policy, candidates)
    exposures = ", ".join(
        f"{group} {value.exposure[candidates.groups == group].mean():.3f}" for group in ("male", "female")
    )
    print(f"{name}: NDCG {value.utility:.4f}, disparity {value.disparity:.4f}, mean exposure {exposures}")


# %% [markdown]
# Sorted, then fair in exposure, then fair in expected clicks:

# %%
regression = rp.Regression(model="linear").fit(candidates)
show("sorted by relevance", SortedPolicy(regression))
show("Fair-PG-Rank", rp.FairPGRank(strength=1.0).fit(candidates))
clicks = rp.fairness.GroupExposure(impact=True)
show("Fair-PG-Rank, equal clicks per merit", rp.FairPGRank(fairness=clicks, strength=1.0).fit(candidates))
