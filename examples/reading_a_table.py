"""
Reading a reproduction table
============================

The repository holds the paper's printed tables (``paper_tables/``) and every trial of our runs
(``results/reference/``). This is how to put them side by side and what the words mean.
"""

# %%
# A *cell* is one dataset, one method and one set of priors: the mean of ten trials and its standard
# error. ``read_results`` reads our runs and looks up the printed cells.

from pathlib import Path

import matplotlib.pyplot as plt

from pu_shift.paper.compare import headline, load_paper_table
from pu_shift.paper.figures import method_colour
from pu_shift.report.results import read_results

printed = load_paper_table(1)
print(printed.head(3).to_string(index=False))

folder = next(
    path / "results" / "reference"
    for path in (Path.cwd(), *Path.cwd().parents)
    if (path / "results" / "reference").is_dir()
)
cells = read_results(folder).comparison
table = cells[cells["table"] == 1]
print(table[["dataset", "method", "mean", "se", "paper_mean", "paper_se"]].head(3).to_string())

# %%
# A cell is *consistent* when a t-test does not tell our ten trials from the printed mean and
# standard error. Even the authors' own program, run again, would not have all cells consistent.
# The *noise ceiling* is the share that it would have.

figures = headline(table)
print(f"Table 1: {figures.consistent:.1%} of {figures.cells} cells are consistent")
print(f"noise ceiling: {figures.ceiling:.1%}")
print(f"mean absolute difference: {figures.mean_abs_delta:.2f} points")

# %%
# Every cell of Table 1 as one point: the farther from the line, the larger the difference. Hollow
# points are the cells that are not consistent.

figure, axes = plt.subplots(figsize=(5.6, 5.6), layout="constrained")
axes.plot([48, 90], [48, 90], color="0.6", linewidth=0.8)
for method, part in table.groupby("method", sort=False):
    colour = method_colour(method)
    for consistent, fill in ((1, colour), (0, "none")):
        some = part[part["consistent"] == consistent]
        axes.scatter(some["paper_mean"], some["mean"], facecolors=fill, edgecolors=colour)
    axes.scatter([], [], color=colour, label=method)
axes.set(xlabel="paper (%)", ylabel="ours (%)", title="Table 1: π = 0.3, π′ = 0.5")
axes.legend(frameon=False)
plt.show()
