"""The colours of lines in figures, and how pages adapt them to a light or dark background."""

from __future__ import annotations

# Okabe & Ito 2008: distinguishable with colour vision deficiencies. Image files, which are white, have these.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
# The same hues on pages, each with a contrast of at least 3:1 to the background.
ON_LIGHT = ("#0072B2", "#D55E00", "#00946B", "#C0679A", "#B98000", "#2F93D0")
ON_DARK = ("#3A8FD0", "#E8702A", "#12B184", "#D68DB5", "#E69F00", "#7CC8F4")


def css_variables(colours: tuple[str, ...]) -> str:
    """Declarations of the colours as CSS variables, one per colour of the palette.

    Parameters
    ----------
    colours
        One colour for each of the palette.

    >>> css_variables(("#000000", "#ffffff"))
    '--c0: #000000; --c1: #ffffff;'
    """
    return " ".join(f"--c{place}: {colour};" for place, colour in enumerate(colours))


def with_page_colours(svg: str) -> str:
    """SVG text in which the colours of the palette are those of the page around it; on their own they stay as they are.

    Parameters
    ----------
    svg
        SVG text that writes colours in lower case, as matplotlib does.

    >>> with_page_colours('<path style="stroke: #0072b2"/>')
    '<path style="stroke: var(--c0, #0072b2)"/>'
    """
    for place, colour in enumerate(PALETTE):
        svg = svg.replace(colour.lower(), f"var(--c{place}, {colour.lower()})")
    return svg
