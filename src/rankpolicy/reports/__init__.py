"""Reports: figures, and HTML pages that are one self-contained file."""

from typing import TYPE_CHECKING

from rankpolicy.optional import lazy_imports

if TYPE_CHECKING:
    from rankpolicy.reports.comparison_report import comparison_page as comparison_page
    from rankpolicy.reports.html import Section as Section, html_page as html_page, write_page as write_page
    from rankpolicy.reports.run_record import RunRecord as RunRecord, installed_versions as installed_versions

__getattr__, __dir__, __all__ = lazy_imports(__name__, __file__)
