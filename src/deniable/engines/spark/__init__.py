"""Apache Spark: the engine of many machines, and reports that exist only as DataFrames."""

from deniable.engines.spark.engine import SparkEngine as SparkEngine
from deniable.engines.spark.frames import privatize as privatize
from deniable.engines.spark.frames import tally as tally
