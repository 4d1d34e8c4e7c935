"""Public data of the papers, read as downloaded (or from Parquet copies), never shipped."""

from deniable.datasets.columns import Column, Dataset
from deniable.datasets.loading import load
from deniable.datasets.sources import SOURCES

__all__ = ["SOURCES", "Column", "Dataset", "load"]
