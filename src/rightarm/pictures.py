"""Matplotlib's figure, which also shows itself in a notebook."""

from __future__ import annotations

import io

from rightarm.errors import needed_for

with needed_for("plot()"):
    from matplotlib.figure import Figure


class Picture(Figure):
    """A figure that belongs to no window: a notebook shows it, ``savefig`` writes it.

    Jupyter shows plain figures only once somebody has imported pyplot; this one brings its picture along.
    """

    def _repr_png_(self) -> bytes:
        """Return the picture, for Jupyter."""
        buffer = io.BytesIO()
        self.savefig(buffer, format="png")
        return buffer.getvalue()
