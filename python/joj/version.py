"""The version of the package: that of joj, which builds it."""

VERSION = "0.1.0"
#: The version of the tables that this package reads (docs/trace_tables.md). Version 1 had no checksum of a file's end.
TABLES_VERSION = 2
