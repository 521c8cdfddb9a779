"""The parts of `multikernel.inspection.report`: cautions, scores, pictures and sections of one HTML page."""
