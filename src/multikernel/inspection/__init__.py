"""What fitted models learned: importance of views, columns and sequence positions, comparisons, displays."""

from multikernel.inspection.column_importance import ColumnImportance, column_importance
from multikernel.inspection.compare import compare
from multikernel.inspection.comparison import Comparison
from multikernel.inspection.embedding import ClassEmbeddingDisplay
from multikernel.inspection.importance import PositionImportance, position_importance
from multikernel.inspection.importance_display import SequenceImportanceDisplay
from multikernel.inspection.motifs import Motif, Motifs, top_motifs
from multikernel.inspection.permutation import PermutationTest, permutation_test
from multikernel.inspection.scores import PositionScores, score_positions
from multikernel.inspection.view_importance import ViewImportance, view_importance

__all__ = [
    "ClassEmbeddingDisplay",
    "ColumnImportance",
    "Comparison",
    "Motif",
    "Motifs",
    "PermutationTest",
    "PositionImportance",
    "PositionScores",
    "SequenceImportanceDisplay",
    "ViewImportance",
    "column_importance",
    "compare",
    "permutation_test",
    "position_importance",
    "score_positions",
    "top_motifs",
    "view_importance",
]
