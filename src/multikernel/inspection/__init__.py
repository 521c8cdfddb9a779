"""What fitted models learned: reports, importance of views, columns and sequence positions, comparisons, displays."""

from multikernel.inspection.column_importance import ColumnImportance, column_importance
from multikernel.inspection.compare import compare
from multikernel.inspection.comparison import Comparison
from multikernel.inspection.convergence_display import ConvergenceDisplay
from multikernel.inspection.embedding import ClassEmbeddingDisplay
from multikernel.inspection.importance import PositionImportance, position_importance
from multikernel.inspection.importance_display import SequenceImportanceDisplay
from multikernel.inspection.kernel_comparison import KernelComparisonDisplay
from multikernel.inspection.model_report import Report, report
from multikernel.inspection.motifs import Motif, Motifs, top_motifs
from multikernel.inspection.page.cautions import Caution, find_cautions
from multikernel.inspection.path_display import PathDisplay
from multikernel.inspection.permutation import PermutationTest, permutation_test
from multikernel.inspection.scores import PositionScores, score_positions
from multikernel.inspection.view_display import ImportanceDisplay
from multikernel.inspection.view_importance import ViewImportance, view_importance
from multikernel.inspection.weights_display import WeightsDisplay

__all__ = [
    "Caution",
    "ClassEmbeddingDisplay",
    "ColumnImportance",
    "Comparison",
    "ConvergenceDisplay",
    "ImportanceDisplay",
    "KernelComparisonDisplay",
    "Motif",
    "Motifs",
    "PathDisplay",
    "PermutationTest",
    "PositionImportance",
    "PositionScores",
    "Report",
    "SequenceImportanceDisplay",
    "ViewImportance",
    "WeightsDisplay",
    "column_importance",
    "compare",
    "find_cautions",
    "permutation_test",
    "position_importance",
    "report",
    "score_positions",
    "top_motifs",
    "view_importance",
]
