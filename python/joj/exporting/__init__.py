"""Tables of many saved traces: `joj trace --read` over files, several at a time, here or on Spark's workers (docs/fleet_export.md).

    exported = joj.export(["traces"], "fleet", jobs=8, label_from_path="{device}/{device_id}/*.parquet")

run      exports all of them; what was exported is not made again
traces   which traces there are, and their labels
one      what is done with one of them, on a thread or on a worker
"""

from joj.exporting.run import Exported, export

__all__ = ["Exported", "export"]
