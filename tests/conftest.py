"""Settings that all tests share."""

from hypothesis import settings

settings.register_profile("rightarm", derandomize=True, deadline=None, database=None, max_examples=50)
settings.load_profile("rightarm")

collect_ignore = ["data"]  # files of earlier versions, kept as they are
