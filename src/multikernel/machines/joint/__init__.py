"""Machines of all classes at once."""
