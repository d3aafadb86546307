"""A site that keeps what is posted to it: one INSERT in a transaction of each request. django_requests.py starts it.

    SITE_DATABASE=app.db SITE_SIDE="waldio full" gunicorn django_site:application
    SITE_DATABASE=app.db SITE_SIDE="waldio full" python django_site.py     makes the table
"""

import os

import django
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse, JsonResponse
from django.urls import path

#: As Django's documentation has it for SQLite that several threads write to.
PATIENT = {"transaction_mode": "IMMEDIATE", "timeout": 60}
STOCK, WALDIO = "django.db.backends.sqlite3", "waldio.django"
SIDES = {
    "stock FULL": (STOCK, {"init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL"}),
    "stock NORMAL": (STOCK, {"init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL"}),
    "waldio full": (WALDIO, {"durability": "full"}),
    "waldio bounded": (WALDIO, {"durability": "bounded"}),
}

engine, more = SIDES[os.environ["SITE_SIDE"]]
settings.configure(
    DATABASES={
        "default": {
            "ENGINE": engine,
            "NAME": os.environ["SITE_DATABASE"],
            "OPTIONS": {**PATIENT, **more},
            "ATOMIC_REQUESTS": True,
            # None: a thread keeps its connection. 0 is Django's default: each request opens the database anew.
            "CONN_MAX_AGE": 0 if os.environ.get("SITE_CONNECTIONS") == "new" else None,
        }
    },
    ALLOWED_HOSTS=["127.0.0.1"],
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    LOGGING={
        "version": 1,
        "disable_existing_loggers": False,
        "handlers": {"console": {"class": "logging.StreamHandler"}},
        # An exception of a request, "database is locked" for one, is answered with 500 and written here.
        "loggers": {"django.request": {"handlers": ["console"], "level": "ERROR"}},
    },
    MIDDLEWARE=["django.middleware.common.CommonMiddleware"],
    ROOT_URLCONF=__name__,
    SECRET_KEY="of no use",
)
django.setup()

from django.db import connection, models  # noqa: E402


class Entry(models.Model):
    text = models.TextField()
    created = models.DateTimeField(auto_now_add=True, db_index=True)

    class Meta:
        app_label = "site"
        db_table = "entry"


def add(request):
    Entry.objects.create(text=request.body.decode())
    return HttpResponse("kept")


def state(_request):
    """What the connection of the thread that answers is."""

    def ask(pragma):
        with connection.cursor() as cursor:
            cursor.execute(f"PRAGMA {pragma}")
            row = cursor.fetchone() if cursor.description else None
            return row and row[0]

    Entry.objects.first()
    return JsonResponse({name: ask(name) for name in ("waldio", "journal_mode", "synchronous")})


urlpatterns = [path("add", add), path("state", state)]
application = get_wsgi_application()

if __name__ == "__main__":
    with connection.schema_editor() as editor:
        editor.create_model(Entry)
