"""Reports: figures, and pages that are one self-contained file."""

from rankpolicy.reports.comparison_report import comparison_page
from rankpolicy.reports.html import Section, html_page, write_page
from rankpolicy.reports.run_record import RunRecord, installed_versions

__all__ = ["RunRecord", "Section", "comparison_page", "html_page", "installed_versions", "write_page"]
