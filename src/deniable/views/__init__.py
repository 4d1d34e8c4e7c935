"""How results look: charts as plain Vega-Lite dictionaries, and tables for the terminal.

`chart(result)` and `table(result)` dispatch on the class of the result. The views of a package's
results are in the module of the same name, which is loaded when one of them is first looked at; a
result from elsewhere registers its own, or has those of the class that it comes from.
"""

from deniable.views.files import check_path, save, wrapped
from deniable.views.registry import View

__all__ = ["chart", "check_path", "save", "table", "wrapped"]

#: What a result looks like: a Vega-Lite specification with its data; Python wraps it (`wrapped`),
#: files save it (`save`), and the dashboard draws it.
chart = View("chart")
#: The same as a table of Rich.
table = View("table")
