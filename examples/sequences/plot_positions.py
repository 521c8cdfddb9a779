"""
Where in a sequence the signal is
=================================

DNA sequences drawn at random, half of them with a motif at position 30 that mutates often. One weighted degree kernel
for each window of positions: the weights find the motif, as in Figure 4 of Sonnenburg, Raetsch and Schaefer 2005.
"""

import matplotlib.pyplot as plt

from multikernel import MKLClassifier
from multikernel.datasets import dna
from multikernel.inspection import SequenceImportanceDisplay
from multikernel.kernels import PositionBlocks, WeightedDegree

sequences, y = dna(400, 60, motif="GATTACAGGCAT", at=30, mutation=0.25)
train, test = slice(0, 300), slice(300, 400)
model = MKLClassifier(PositionBlocks(WeightedDegree(3), 20)).fit(sequences[train], y[train])
print(f"accuracy on new sequences {model.score(sequences[test], y[test]):.2f}")

# %%
# Position 0 of the picture is the first letter of the motif, which has twelve.
fig, axes = plt.subplots(2, 1, figsize=(7, 5), sharex=True, layout="constrained")
for ax, quantity in zip(axes, ["weights", "contributions"], strict=True):
    SequenceImportanceDisplay.from_estimator(model, quantity=quantity, origin=30, ax=ax)
    ax.axvspan(-0.5, 11.5, color="0.9", zorder=-1)
plt.show()
