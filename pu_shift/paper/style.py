"""One look for every figure and the page: a colour and a dash per method, a marker per dataset.

The colours are safe for the colour-blind; dashes and markers say the same without colour.
"""

from __future__ import annotations

from pu_shift.paper.settings import DATASETS, EXTRA_METHODS, METHODS

# The palette of Okabe and Ito, without its yellow, which is too pale on white.
_COLOURS = ("#E69F00", "#0072B2", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#000000")
METHOD_COLOURS = dict(zip((*METHODS, *EXTRA_METHODS), _COLOURS))
# Lengths of strokes and gaps; none is a solid line.
_DASHES = ((5, 2), (), (1, 1.5), (7, 2, 1, 2), (3, 1), (5, 1, 1, 1, 1, 1), (2, 4))
METHOD_DASHES = dict(zip(METHOD_COLOURS, _DASHES))
DATASET_MARKERS = dict(zip(DATASETS, "osD^v>"))  # all wide enough to be seen as hollow
OTHER_COLOUR = "#777777"
OTHER_MARKER = "X"
# The classes +1 and −1, and the signs of a difference.
POSITIVE_COLOUR, NEGATIVE_COLOUR = "#0072B2", "#D55E00"
# A difference of as many points has the strongest colour of a heat map.
STRONGEST_DELTA = 10.0


def method_colour(method: str) -> str:
    """Return the colour of a method; one that the paper does not know is grey."""
    return METHOD_COLOURS.get(method, OTHER_COLOUR)


def method_dash(method: str) -> tuple[float, ...]:
    """Return the strokes and gaps of a method's lines, in points; empty for a solid line."""
    return METHOD_DASHES.get(method, ())


def dataset_marker(dataset: str) -> str:
    """Return the Matplotlib marker of a dataset; those the paper does not know share one."""
    return DATASET_MARKERS.get(dataset, OTHER_MARKER)


def delta_colour(delta: float) -> str:
    """Return the background of a difference: white for 0, blue above, vermilion below."""
    strongest = POSITIVE_COLOUR if delta > 0 else NEGATIVE_COLOUR
    # At most 60 % of the colour: black on it keeps a contrast above 7:1.
    share = 0.6 * min(abs(delta) / STRONGEST_DELTA, 1.0)
    channels = (int(strongest[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(255 + share * (channel - 255)):02x}" for channel in channels)


def delta_text(delta: float) -> str:
    """Return a difference in points with its sign."""
    # Adding zero turns -0.0 into 0.0.
    return f"{round(delta, 1) + 0.0:+.1f}"


def literal(name: str) -> str:
    """Return a name that Matplotlib shows as it is: dollar signs would make it a formula."""
    return name.replace("$", r"\$")
