"""Test error of l1, l2 and canonical mixtures against the share of informative kernels (Toy 1, section 4.1)."""

from __future__ import annotations

import numpy as np
from experiments import average, claim, column, mean_and_error, note, values

from multikernel import MKLClassifier, MKLClassifierCV, stack_kernels
from multikernel.datasets import make_redundant_kernels

title = "Figure 1 left: redundant kernels, l1, l2 and the canonical mixture"
compared = """d = 60, p = 30, tau = 4, 900 samples in three equal parts, kernels and normalisation as section 4.1.
It leaves open the distance of the class means (ours 3, in equal parts along every feature), the entries of A_i
(standard normal), what happens where nu does not divide d (sets differ by one feature), and the grid of eta in
[0.001, 10] (ours nine values, evenly on a logarithmic scale); the numbers of the figure are not printed."""
SETS = (1, 2, 3, 4, 6, 8, 12, 15, 20, 30)
COSTS = tuple(np.geomspace(0.001, 10.0, 9))
METHODS = ("l1", "l2", "canonical")
P = 30


def tasks(small):
    """Every number of disjoint feature sets and repetition."""
    # a difference of one point at full independence takes more than a dozen repetitions to tell from none
    repetitions = {1: 12, 4: 12, 30: 50} if small else dict.fromkeys(SETS, 100)
    return [{"repetition": r, "sets": nu} for r in range(100) for nu in repetitions if r < repetitions[nu]]


def work(small, repetition, sets):
    """Test errors of the three methods, eta chosen on the validation part, on the same kernels."""
    # differences at full independence show with as many samples as in a full run
    n = 240 if small and sets < SETS[-1] else 900
    seed = 1000 * repetition + sets
    data = make_redundant_kernels(n, n_sets=sets, n_kernels=P, dtype=np.float32, random_state=seed)
    stack, y = stack_kernels(data.kernels), data.y
    parts = np.array_split(np.random.default_rng(seed).permutation(n), 3)
    both, third = np.concatenate(parts[:2]), n // 3
    train, test, mean = parts[0], parts[2], average(stack)
    options = {"normalize": None, "tol": 1e-2, "n_jobs": 1}
    found = {}
    for kernels, norms in ((stack, {"l1": 1.0, "l2": 2.0}), (mean, {"canonical": 1.0})):
        # one search over eta and norm, trained on the first part and scored on the second
        search = MKLClassifierCV(
            "precomputed", Cs=COSTS[:: 2 if small else 1], norms=list(norms.values()), refit=False, baselines=False,
            **options, cv=[(np.arange(third), np.arange(third, 2 * third))],
        ).fit(kernels[both], y[both])  # fmt: skip
        scores, points = search.cv_results_["mean_test_score"], search.cv_results_["params"]
        for method, norm in norms.items():
            best = max((i for i, point in enumerate(points) if point["norm"] == norm), key=lambda i: scores[i])
            model = MKLClassifier("precomputed", **points[best], **options).fit(kernels[train], y[train])
            found[method] = 1.0 - model.score(kernels[test], y[test])
    return found


def table(rows):
    """Return the numbers of sets, and mean and standard error of each method, (3, numbers, 2)."""
    sets = values(rows, "sets")
    return np.array(sets), np.array(
        [[mean_and_error(column(rows, method, sets=nu)) for nu in sets] for method in METHODS]
    )


def verdicts(rows):
    """The statements of section 4.1, differences paired by repetition."""
    sets, errors = table(rows)
    few, many = sets[(sets > 1) & (sets <= 4)], sets[(sets > 1) & (sets <= 8)]

    def apart(first, second, *chosen):
        """Mean over the numbers of sets of the difference in points, and its standard error."""
        return mean_and_error(
            np.mean([100 * (column(rows, first, sets=nu) - column(rows, second, sets=nu)) for nu in chosen], axis=0)
        )

    behind = {nu: max(apart("l1", other, nu) for other in ("l2", "canonical")) for nu in few}
    ahead, canonical, worst = (apart("canonical", "l2", *many), apart("canonical", "l2", sets[-1]),
                               apart("l1", "canonical", sets[-1]))  # fmt: skip
    each = "; ".join(f"{nu}: {apart('canonical', 'l2', nu)[0]:.2f}" for nu in many)
    # less two standard errors, over the worse of the other two
    above = max(
        apart("l2", other, nu)[0] - 2 * apart("l2", other, nu)[1]
        for i, nu in enumerate(sets)
        for other in [METHODS[2 * int(errors[0, i, 0] < errors[2, i, 0])]]
    )
    spread, full = np.ptp(100 * errors[:, 0, 0]), f"nu = {sets[-1]}"
    shown = "; ".join(
        f"{nu}: " + ", ".join(f"{each:.2f}" for each in 100 * errors[:, i, 0]) for i, nu in enumerate(sets)
    )
    return [
        claim("l1 best at few informative kernels: l1 - the best other method in points, by nu", "below 0",
              "; ".join(f"{nu}: {each[0]:.2f}" for nu, each in behind.items()),
              all(each[0] < -2 * each[1] for each in behind.values()),
              "the mean of several copies of a set undoes their random matrices, so that the other two gain from "
              "redundancy as well", f"{max(each[1] for each in behind.values()):.2f}"),
        claim(f"l2 ahead of canonical where kernels are redundant, our range nu = {many[0]} to {many[-1]}: mean of "
              "canonical - l2 in points, and each", "above 0", f"{ahead[0]:.2f} ({each})", ahead[0] > 2 * ahead[1],
              "no clear difference", f"{ahead[1]:.2f}"),
        claim(f"canonical best at full independence, {full}: canonical - l2 in points", "below 0",
              f"{canonical[0]:.2f}", canonical[0] < -2 * canonical[1], "no clear difference", f"{canonical[1]:.2f}"),
        claim(f"l1 worst at full independence, {full}: l1 - canonical in points", "above 0", f"{worst[0]:.2f}",
              worst[0] > 2 * worst[1], "no clear difference", f"{worst[1]:.2f}"),
        claim("l2 never worst: its largest excess in points over the worse of the others, less two errors", "at most 0",
              f"{above:.2f}", above <= 0, "worst at some nu"),
        claim("all alike when every kernel has everything, nu = 1: range of errors in points", "equal (within 0.5)",
              f"{spread:.2f}", spread < 0.5,
              "l1 takes few kernels, and so averages over few of the random matrices",
              f"{100 * errors[:, 0, 1].max():.2f}"),
        note("error in % of l1, l2, canonical, by nu", shown),
    ]  # fmt: skip


def draw(rows, figure):
    """Draw the errors against the share of informative kernels."""
    sets, errors = table(rows)
    axes = figure.subplots()
    for method, line in zip(METHODS, errors, strict=True):
        axes.errorbar(sets / P, 100 * line[:, 0], 100 * line[:, 1], marker="o", ms=3, capsize=2, label=method)
    axes.set(xlabel="share of informative kernels, nu / p", ylabel="test error (%)")
    axes.legend()
