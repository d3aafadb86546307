"""What Django asks a database backend for: its own for SQLite, with waldio below."""

from __future__ import annotations

from typing import Any

from django.db.backends.sqlite3 import base

import waldio


class DatabaseWrapper(base.DatabaseWrapper):
    """Each connection is in WAL mode with synchronous=FULL, or raises waldio.NotActiveError.

    OPTIONS["durability"] is as for waldio.connect; the others are Django's. A database in memory, as tests have it, goes without.
    """

    display_name = "SQLite with waldio"

    def get_connection_params(self) -> dict[str, Any]:
        waldio.register()
        parameters = super().get_connection_params()
        self._durability = parameters.pop("durability", "full")
        return parameters

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        connection = super().get_new_connection(conn_params)
        if not self.is_in_memory_db():
            try:
                waldio.settle(connection.cursor(), self._durability, str(self.settings_dict["NAME"]))
            except BaseException:
                connection.close()
                raise
        return connection
