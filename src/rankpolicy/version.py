"""The one place that names the version; it is known also where the package runs from its source folder."""

__version__ = "0.2.0"
