"""Small pieces of a report's text: clusters by name and colour."""

from asterism.plotting.page import Html, element
from asterism.plotting.style import cluster_color

__all__ = ["cluster_name", "cluster_tag", "swatch"]


def cluster_name(label: int) -> str:
    """Name of a cluster, or of the noise.

    >>> cluster_name(3), cluster_name(-1)
    ('Cluster 3', 'Noise')
    """
    return "Noise" if label < 0 else f"Cluster {label}"


def swatch(label: int) -> Html:
    """Draw a dot in the colour of a cluster."""
    return element("span", class_="swatch", style=f"background:{cluster_color(label)}")


def cluster_tag(label: int) -> Html:
    """Name of a cluster behind a dot in its colour."""
    return element("span", swatch(label), cluster_name(label), class_="name")
