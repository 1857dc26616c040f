"""The report: one page, its figures and its assets."""
