"""The terms of the bound of Theorem 2 as the kernel margin gamma0 that the weights must have grows (Lemma 4)."""

from __future__ import annotations

import numpy as np
from experiments import claim, column, mean_and_error, note, values

from multikernel import M3KClassifier
from multikernel.datasets import make_simplex
from multikernel.kernels import RBF, Linear, per_group
from multikernel.theory import bound_report

title = "Theorem 2: the bound against gamma0"
compared = """The paper prints no numbers. Four classes at the vertices of a simplex (noise 0.3) beside nine
columns of noise; two Gaussian kernels on the columns of the classes, the same two and a linear one of nine times
their trace on the noise, not normalised (where the kernel of largest trace also has the largest margin, T does not
change at all); 300 samples, 20 draws, C = 1, rho = 1, delta = 0.05; gamma0 in tenths of the largest feasible margin.
Margins and Lambda are measured on the training samples: a plug-in estimate, not a guarantee."""
GAUSSIANS = [RBF(width=0.5), RBF(width=4.0)]
KERNELS = [
    per_group(GAUSSIANS, {"classes": list(range(3))}),
    per_group([*GAUSSIANS, Linear()], {"noise": list(range(3, 12))}),
]
LINES = (
    {"T": "largest trace"},
    {"per_Lambda": "for Lambda = 1", "complexity": "with the model's Lambda"},
    {"margin_loss": "margin loss", "test_error": "test error"},
)
FRACTIONS = tuple(float(each) for each in np.round(np.linspace(0.0, 1.0, 11), 1))


def tasks(small):
    """Every draw and fraction of the largest margin."""
    fractions, draws = ((0.0, 0.5, 1.0), 2) if small else (FRACTIONS, 20)
    return [{"draw": draw, "fraction": fraction} for draw in range(draws) for fraction in fractions]


def samples(n, draw):
    """Return the classes' three columns with nine columns of noise beside them, and the classes."""
    X, y = make_simplex(n, n_classes=4, random_state=draw)
    return np.column_stack([X, np.random.default_rng(draw).normal(size=(n, 9))]), y


def work(small, draw, fraction):
    """The terms of the bound for one trained model, and its test error."""
    X, y = samples(120 if small else 300, draw)
    model = M3KClassifier(KERNELS, gamma0_fraction=fraction, normalize=None, n_jobs=1).fit(X, y)
    report = bound_report(model, X, y, verbose=False)
    return {
        "gamma0": report.gamma0, "T": report.T, "count": report.n_inside + report.n_pairs, "Lambda": report.Lambda,
        "complexity": report.bound.complexity, "margin_loss": report.bound.margin_loss, "total": report.bound.total,
        "per_Lambda": report.bound.complexity / report.Lambda,
        "test_error": 1.0 - model.score(*samples(2000, 500 + draw)),
    }  # fmt: skip


def means(rows, key):
    """Return the means and standard errors of a column at each fraction."""
    return np.array([mean_and_error(column(rows, key, fraction=fraction)) for fraction in values(rows, "fraction")])


def verdicts(rows):
    """Lemma 4 and what the text makes of it."""
    T = np.array([column(rows, "T", draw=draw) for draw in values(rows, "draw")])
    rise = (np.diff(T, axis=1) / T[:, :1]).max()
    per, total, errors = means(rows, "per_Lambda"), means(rows, "complexity"), means(rows, "test_error")
    # where they are largest, if not at the first gamma0
    tops = [each[:, 0].argmax() for each in (per, total)]
    rises = [f"after a rise to {each[top, 0]:.1f} at {values(rows, 'fraction')[top]:g} of the largest" if top else ""
             for each, top in zip((per, total), tops, strict=True)]  # fmt: skip
    excess = min(row["total"] - row["test_error"] for row in rows)
    return [
        claim("T: largest rise from one gamma0 to the next, any draw", "at most 0 (Lemma 4)", f"{max(rise, 0):.1e}",
              rise <= 1e-12, "T rises"),
        claim("complexity term for one Lambda, gamma0 = 0 to the largest", "smaller (by two errors)",
              f"{per[0, 0]:.2f} to {per[-1, 0]:.2f}", per[-1, 0] + 2 * per[-1, 1] < per[0, 0],
              "|I| + |J| grows more than T falls", f"{per[-1, 1]:.2f}", rises[0]),
        claim("complexity term with the Lambda of the trained model, gamma0 = 0 to the largest",
              "smaller (by two errors)", f"{total[0, 0]:.1f} to {total[-1, 0]:.1f}",
              total[-1, 0] + 2 * total[-1, 1] < total[0, 0],
              "the norm of the functions grows as the weights are restricted", f"{total[-1, 1]:.1f}", rises[1]),
        note("the bound less the test error, least of all models (a bound above 1 says nothing)", f"{excess:.1f}"),
        note("models whose bound is below 1, where it says something", f"{np.mean(column(rows, 'total') < 1):.0%}"),
        note("test error, gamma0 = 0 to the largest", f"{errors[0, 0]:.3f} to {errors[-1, 0]:.3f}",
             f"{errors[-1, 1]:.3f}"),
    ]  # fmt: skip


def draw(rows, figure):
    """Draw T, the complexity term and the errors against gamma0."""
    fractions = values(rows, "fraction")
    axes = figure.subplots(1, 3)
    for ax, ylabel, lines in zip(axes, ("T, trace term", "complexity term", "share of samples"), LINES, strict=True):
        for key, label in lines.items():
            ax.errorbar(fractions, *means(rows, key).T, marker="o", ms=3, label=label)
        ax.set(xlabel="gamma0 / largest", ylabel=ylabel)
        ax.legend(fontsize="small")


size = (10, 3.5)
