"""Files and data frames that a dataset is read from and written to."""
