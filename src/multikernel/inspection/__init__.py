"""What fitted models learned: reports, displays, comparisons of methods, importance of sequence positions."""

from multikernel.inspection.compare import compare
from multikernel.inspection.comparison import Comparison
from multikernel.inspection.convergence_display import ConvergenceDisplay
from multikernel.inspection.embedding import ClassEmbeddingDisplay
from multikernel.inspection.importance import PositionImportance, position_importance
from multikernel.inspection.importance_display import SequenceImportanceDisplay
from multikernel.inspection.kernel_comparison import KernelComparisonDisplay
from multikernel.inspection.motifs import Motif, Motifs, top_motifs
from multikernel.inspection.page.cautions import Caution, find_cautions
from multikernel.inspection.path_display import PathDisplay
from multikernel.inspection.report import Report, report
from multikernel.inspection.scores import PositionScores, score_positions
from multikernel.inspection.view_display import ImportanceDisplay
from multikernel.inspection.weights_display import WeightsDisplay

__all__ = [
    "Caution",
    "ClassEmbeddingDisplay",
    "Comparison",
    "ConvergenceDisplay",
    "ImportanceDisplay",
    "KernelComparisonDisplay",
    "Motif",
    "Motifs",
    "PathDisplay",
    "PositionImportance",
    "PositionScores",
    "Report",
    "SequenceImportanceDisplay",
    "WeightsDisplay",
    "compare",
    "find_cautions",
    "position_importance",
    "report",
    "score_positions",
    "top_motifs",
]
