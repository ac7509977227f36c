"""Click tables: one row per item shown, with its rank, its click and side columns."""
