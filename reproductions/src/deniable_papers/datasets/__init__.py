"""Public data of the papers, read as downloaded (or from Parquet copies), never shipped."""

from deniable_papers.datasets.columns import Column, Dataset
from deniable_papers.datasets.loading import load
from deniable_papers.datasets.sources import SOURCES

__all__ = ["SOURCES", "Column", "Dataset", "load"]
