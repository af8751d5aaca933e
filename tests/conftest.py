"""Settings that all tests share."""

import os

from hypothesis import settings

settings.register_profile("rightarm", derandomize=True, deadline=None, database=None, max_examples=50)
settings.load_profile("rightarm")

collect_ignore = ["data"]  # files of earlier versions, kept as they are

# What commands print depends on the terminal; tests see the same one everywhere.
os.environ["COLUMNS"], os.environ["TERM"] = "80", "dumb"
for name in ("LINES", "CLICOLOR_FORCE", "FORCE_COLOR", "GITHUB_ACTIONS", "NO_COLOR", "PY_COLORS", "TTY_COMPATIBLE"):
    os.environ.pop(name, None)
