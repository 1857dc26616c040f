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
    """Return the colour of a method, the same in every figure.

    Parameters
    ----------
    method : str
        Its name; one that the paper does not know is grey.

    Returns
    -------
    str
        The colour in hexadecimal.

    Examples
    --------
    >>> method_colour("p/u uLSIF")
    '#0072B2'
    """
    return METHOD_COLOURS.get(method, OTHER_COLOUR)


def method_dash(method: str) -> tuple[float, ...]:
    """Return the dash pattern of a method's lines, the same in every figure.

    Parameters
    ----------
    method : str
        Its name; the line of one that the paper does not know is solid.

    Returns
    -------
    tuple of float
        Lengths of strokes and gaps in points; empty for a solid line.

    Examples
    --------
    >>> method_dash("u/p uLSIF")
    (5, 2)
    """
    return METHOD_DASHES.get(method, ())


def dataset_marker(dataset: str) -> str:
    """Return the marker of a dataset, the same in every figure.

    Parameters
    ----------
    dataset : str
        Its name; all that the paper does not know share one marker.

    Returns
    -------
    str
        A Matplotlib marker.

    Examples
    --------
    >>> dataset_marker("banana")
    'o'
    """
    return DATASET_MARKERS.get(dataset, OTHER_MARKER)


def delta_colour(delta: float) -> str:
    """Return the background of a difference in a heat map, pale enough for black text.

    Parameters
    ----------
    delta : float
        The difference in points; beyond ±10 the colour stays the same.

    Returns
    -------
    str
        The colour in hexadecimal: white for 0, blue above, vermilion below.

    Examples
    --------
    >>> delta_colour(0.0), delta_colour(-12.0)
    ('#ffffff', '#e69e66')
    """
    strongest = POSITIVE_COLOUR if delta > 0 else NEGATIVE_COLOUR
    # At most 60 % of the colour: black on it keeps a contrast above 7:1.
    share = 0.6 * min(abs(delta) / STRONGEST_DELTA, 1.0)
    channels = (int(strongest[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(255 + share * (channel - 255)):02x}" for channel in channels)
