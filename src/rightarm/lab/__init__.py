"""The laboratory: the paper's experiments, ready to run."""
