"""Reports: figures, and HTML pages that are one self-contained file."""

from typing import TYPE_CHECKING

from rankpolicy.optional import lazy_imports

if TYPE_CHECKING:
    from rankpolicy.reports.comparison_report import comparison_page
    from rankpolicy.reports.html import Section, html_page, write_page
    from rankpolicy.reports.run_record import RunRecord, installed_versions

__getattr__, __dir__ = lazy_imports(__name__, __file__)

__all__ = [
    "RunRecord",
    "Section",
    "comparison_page",
    "html_page",
    "installed_versions",
    "write_page",
]
