"""What a policy is: a formula for a score, for one live decision and compiled."""
