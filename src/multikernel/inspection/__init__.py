"""What fitted models learned: comparisons of methods, importance of sequence positions, displays."""

from multikernel.inspection.compare import compare
from multikernel.inspection.comparison import Comparison
from multikernel.inspection.embedding import ClassEmbeddingDisplay
from multikernel.inspection.importance import PositionImportance, position_importance
from multikernel.inspection.importance_display import SequenceImportanceDisplay
from multikernel.inspection.motifs import Motif, Motifs, top_motifs
from multikernel.inspection.scores import PositionScores, score_positions

__all__ = [
    "ClassEmbeddingDisplay",
    "Comparison",
    "Motif",
    "Motifs",
    "PositionImportance",
    "PositionScores",
    "SequenceImportanceDisplay",
    "compare",
    "position_importance",
    "score_positions",
    "top_motifs",
]
