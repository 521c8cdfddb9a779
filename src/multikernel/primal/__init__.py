"""Learners of the primal problem that see one sample at a time."""
