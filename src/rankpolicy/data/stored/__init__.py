"""Datasets bigger than memory: features stay on disk as small codes, and rows are decoded when they are read.

files ─two passes─> sketch of quantiles ─> codebook ─> codes on disk (cache) ─> StoredFeatures in a RankingDataset
"""
