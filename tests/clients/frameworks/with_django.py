"""Django's ORM, with a thread's own connection for each row, as a client of waldio (the protocol is in ../driver.py)."""

import sys

import counted
import django
from django.conf import settings

verb, database, library = sys.argv[1:]
engine = "waldio.django" if library else "django.db.backends.sqlite3"
settings.configure(
    DATABASES={"default": {"ENGINE": engine, "NAME": database, "OPTIONS": {"transaction_mode": "IMMEDIATE"}}},
    INSTALLED_APPS=[],
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
)
django.setup()

from django.db import close_old_connections, connection, models  # noqa: E402


class Row(models.Model):
    n = models.AutoField(primary_key=True)
    value = models.TextField()

    class Meta:
        app_label = "counted"
        db_table = "t"


if verb == "insert":
    with connection.cursor() as cursor:
        cursor.execute(counted.CREATE)
    while True:
        print("ack", Row.objects.create(value="x" * 100).pk, flush=True)
        # CONN_MAX_AGE is 0: the next row has a new connection, as the next request has.
        close_old_connections()
with connection.cursor() as cursor:
    for name, sql in counted.QUESTIONS.items():
        cursor.execute(sql)
        counted.show(name, cursor.fetchone() if cursor.description else None)
connection.close()
