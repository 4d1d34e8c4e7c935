"""Apache Spark: the engine of many machines, and reports that exist only as DataFrames."""

from deniable.engines.spark.engine import SparkEngine as SparkEngine
