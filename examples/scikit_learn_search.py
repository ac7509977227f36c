# %% [markdown]
# # Settings by scikit-learn's search
#
# Query ids travel with the rows by metadata routing.

# %%
import sklearn
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import rankpolicy as rp

sklearn.set_config(enable_metadata_routing=True)
data = rp.make_web_search(40, random_state=0)
X, y, qid = data.features, data.labels, data.query_of_item

# %% [markdown]
# Settings of the ranker and of its network, in a pipeline:

# %%
pipeline = make_pipeline(StandardScaler(), rp.PGRank(epochs=3, num_networks=1, scaling="none"))
settings = {"pgrank__learning_rate": [1e-3, 1e-2], "pgrank__model__hidden": [(16,), (32, 32)]}
search = GridSearchCV(pipeline, settings, cv=rp.QueryKFold(3)).fit(X, y, qid=qid)
print(f"NDCG@10 {search.best_score_:.4f} with {search.best_params_}")
