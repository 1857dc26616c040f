"""One look for every figure: a colour-blind-safe colour per method, a marker per dataset."""

from __future__ import annotations

from pu_shift.experiment.settings import DATASETS, EXTRA_METHODS, METHODS

# The palette of Okabe and Ito, without its yellow, which is too pale on white.
_COLOURS = ("#E69F00", "#0072B2", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#000000")
METHOD_COLOURS = dict(zip((*METHODS, *EXTRA_METHODS), _COLOURS))
DATASET_MARKERS = dict(zip(DATASETS, "osD^v>"))  # all wide enough to be seen as hollow
OTHER_COLOUR = "#777777"
OTHER_MARKER = "X"


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
