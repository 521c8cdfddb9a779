"""From samples to a fitted model: prepare, train, publish."""
