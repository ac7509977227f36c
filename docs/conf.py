"""Settings of the site for Sphinx; ``make docs`` builds it."""

import sys
from pathlib import Path

sys.path[:0] = [
    str(Path(__file__).parents[1]),
    str(Path(__file__).parents[1] / "src"),
]

from rankpolicy.version import __version__  # noqa: E402

project = "rankpolicy"
copyright = "the authors of rankpolicy, Apache-2.0"
version = release = __version__
extensions = [
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "docs.building.extension",
]
exclude_patterns = ["building"]
nitpicky = True

myst_enable_extensions = [
    "colon_fence",
    "deflist",
    "dollarmath",
    "attrs_inline",
]
myst_heading_anchors = 3
myst_dmath_double_inline = True
suppress_warnings = ["myst.header"]  # docstrings may skip a level of headings

html_theme = "pydata_sphinx_theme"
html_title = "rankpolicy"
html_math_renderer = "mathml"
html_static_path = ["assets"]
html_css_files = ["site.css"]
html_favicon = "assets/favicon.svg"
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {
    name: [] for name in ("index", "gallery", "comparison", "releases")
}
html_theme_options = {
    "logo": {"text": "rankpolicy"},
    "navbar_align": "left",
    "header_links_before_dropdown": 5,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "search_as_you_type": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": {"**": ["page-toc"], "comparison": []},
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
copybutton_exclude = ".linenos, .gp, .go"
copybutton_selector = "div:not(.output) > div.highlight > pre"
