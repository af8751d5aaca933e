"""Measurements of speed; each prints a Markdown table of ratios taken in one run."""
