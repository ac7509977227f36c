"""Quality of rankings on many sets of data: AutoRanker beside LightGBM, XGBoost, CatBoost and the methods of this package."""
