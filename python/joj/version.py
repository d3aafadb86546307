"""The version of the package: that of joj, which builds it."""

VERSION = "0.1.0"
#: The newest version of the tables that this package reads (docs/trace_tables.md).
TABLES_VERSION = 1
