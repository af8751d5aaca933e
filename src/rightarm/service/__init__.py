"""The decision service: bandits behind HTTP."""
