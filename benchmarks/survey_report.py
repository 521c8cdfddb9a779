"""What the survey prints: times of every family as multiples of the reference, fits that did not converge, verdicts."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table

# the median of a family: at most so many times the reference plus so many passes
REFERENCES, PASSES = 10, 50
# no fit above so many times the median of its family, or so many passes, whichever is more
SPREAD, MOST_PASSES = 30, 200
# median at C = 1e4 in terms of the median at C = 1
STIFF = 10
GOOD = ("converged", "refused")


@dataclass(frozen=True)
class Family:
    """The fits of one data set with one bank; a fit that was killed counts with its limit."""

    name: str
    records: list[dict]

    @property
    def timed(self) -> list[dict]:
        return [record for record in self.records if "seconds" in record]

    def values(self, key: str) -> np.ndarray:
        return np.array([record[key] for record in self.timed])

    @property
    def multiples(self) -> np.ndarray:
        return self.values("seconds") / self.values("reference")

    @property
    def passes(self) -> np.ndarray:
        return self.values("seconds") / self.values("one_pass")

    @property
    def allowance(self) -> float:
        """Median of the time as a fraction of what the bar allows."""
        return float(np.median(1.0 / (REFERENCES / self.multiples + PASSES / self.passes)))

    def outliers(self) -> list[tuple[float, dict]]:
        """The fits far above the others, each with its time as a fraction of what the bar allows."""
        seconds, unit = self.values("seconds"), self.values("one_pass")
        share = seconds / np.maximum(SPREAD * np.median(seconds), MOST_PASSES * unit)
        return [(float(part), record) for part, record in zip(share, self.timed, strict=True) if part > 1]

    def stiffness(self) -> float | None:
        """Median time at C = 1e4 over that at C = 1, of settings that were fitted at both."""
        at = {C: [r["seconds"] for r in self.timed if r["C"] == C and r["task"] != "one class"] for C in (1.0, 1e4)}
        return float(np.median(at[1e4]) / np.median(at[1.0])) if min(map(len, at.values())) >= 2 else None


def families(records: list[dict]) -> list[Family]:
    """The families of the records, those nearest to or furthest above their bar first."""
    groups = defaultdict(list)
    for record in records:
        groups[record["family"]].append(record)
    found = [Family(name, group) for name, group in groups.items()]
    return sorted((family for family in found if family.timed), key=lambda family: -family.allowance)


def verdicts(records: list[dict]) -> list[tuple[str, bool, str]]:
    """Each bar: what it asks for, whether it is met, and by how much or where not."""
    found = families(records)
    bad = [record for record in records if record["status"] not in GOOD]
    over = [family for family in found if family.allowance > 1]
    outliers = [outlier for family in found for outlier in family.outliers()]
    stiff = [(ratio, family.name) for family in found if (ratio := family.stiffness()) is not None]
    too_stiff = [name for ratio, name in stiff if ratio > STIFF]
    timed = [record for family in found for record in family.timed if record["task"] != "one class"]
    ends = {C: [record["seconds"] for record in timed if record["C"] == C] for C in (1, 1e4)}
    overall = np.median(ends[1e4]) / np.median(ends[1]) if all(ends.values()) else 0.0
    worst = f"worst {found[0].name}: {found[0].allowance:.2g} of it" if found else "no fit"
    return [
        ("every fit converged or refused", not bad, f"{len(bad)} of {len(records)} are not"),
        (f"median of a family at most {REFERENCES} x the reference + {PASSES} passes", not over,
         f"{len(over)} of {len(found)} families above; {worst}"),
        (f"no fit above {SPREAD} x the family's median or {MOST_PASSES} passes", not outliers,
         f"{len(outliers)} fits above"),
        (f"median at C = 1e4 at most {STIFF} x the median at C = 1", not too_stiff and bool(overall <= STIFF),
         f"{len(too_stiff)} of {len(stiff)} families above; {overall:.3g} over all fits"),
    ]  # fmt: skip


def short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"


def report(records: list[dict], console: Console, command: str = "python benchmarks/survey.py") -> bool:
    """Print all, and return whether every bar is met."""
    found = families(records)
    table = Table(title="Time as multiples of scikit-learn on the plain sum, and in passes over the stack")
    columns = "family", "fits", "median", "95 %", "largest", "passes", "95 %", "largest", "of the bar", "C=1e4 : 1"
    for column in columns:
        table.add_column(column, justify="left" if column == "family" else "right", no_wrap=True)
    for family in found:
        cells = [short(np.quantile(x, at)) for x in (family.multiples, family.passes) for at in (0.5, 0.95, 1.0)]
        stiff = family.stiffness()
        style = "red" if family.allowance > 1 else None
        table.add_row(family.name, str(len(family.records)), *cells, short(family.allowance),
                      "" if stiff is None else short(stiff), style=style)  # fmt: skip
    console.print(table)
    bad = [record for record in records if record["status"] not in GOOD]
    if bad:
        console.print(f"\n[bold]Not converged ({len(bad)}), each redone by {command} --only KEY[/bold]")
    for record in sorted(bad, key=lambda record: (record["status"], record["key"])):
        gap = f", gap {record['gap']:.2g}" if "gap" in record else ""
        seconds = f" after {record['seconds']:.3g} s" if "seconds" in record else ""
        console.print(
            f"  {record['key']}  {record['status']}{seconds}{gap} {record.get('message', '')}", soft_wrap=True
        )
    outliers = sorted((one for family in found for one in family.outliers()), key=lambda one: -one[0])
    if outliers:
        console.print(f"\n[bold]Far above their family ({len(outliers)}), in terms of what is allowed[/bold]")
    for share, record in outliers:
        console.print(f"  {share:7.2f}  {record['key']}  {record['seconds']:.3g} s, {record['status']}", soft_wrap=True)
    refused = sorted({record.get("message", "") for record in records if record["status"] == "refused"})
    if refused:
        console.print("\n[bold]Refused[/bold]")
    for message in refused:
        console.print(f"  {message}", soft_wrap=True, markup=False)
    console.print("\n[bold]Bars[/bold]")
    results = verdicts(records)
    for what, met, detail in results:
        console.print(f"  {'[green]met   [/green]' if met else '[red]missed[/red]'}  {what}: {detail}", soft_wrap=True)
    return all(met for _, met, _ in results)
