"""The same work on many files, on this machine or on many: one contract, several engines."""

from deniable.engines import spark as spark
from deniable.engines.base import Engine as Engine
from deniable.engines.base import Job as Job
from deniable.engines.base import Partial as Partial
from deniable.engines.local import LocalEngine as LocalEngine
from deniable.engines.stored import ReportFiles as ReportFiles
from deniable.engines.stored import report_files as report_files
from deniable.engines.tallying import tally_files as tally_files
