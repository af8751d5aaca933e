"""Contexts: what is known before an arm is chosen, and how it becomes numbers."""

from rightarm.contexts.features import Features

__all__ = ["Features"]
