# %% [markdown]
# # What fairness of exposure costs
#
# Utility and disparity of a linear policy as the price of disparity rises.

# %%
import rankpolicy as rp

train = rp.data.make_fair_synthetic(40, random_state=0)  # a minority whose second feature is missing
for strength in (0.0, 5.0, 10.0, 30.0):
    ranker = rp.FairPGRank(strength=strength, scaling="none", epochs=60).fit(train)
    report = ranker.report_
    print(f"strength {strength:4g}: NDCG {report['utility']:.4f}, group disparity {report['disparity']:.4f}")

# %% [markdown]
# Instead of a price, a bound on the disparity:

# %%
bounded = rp.FairPGRank(max_disparity=0.008, scaling="none", epochs=60).fit(train)
print("bounded by 0.008:", bounded.report_)
