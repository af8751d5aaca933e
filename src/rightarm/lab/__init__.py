"""The laboratory: experiment files, runs, results, reports, and the claims of the paper."""
