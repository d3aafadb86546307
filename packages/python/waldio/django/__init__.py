"""A database backend for Django: SQLite with waldio.

    DATABASES = {"default": {"ENGINE": "waldio.django", "NAME": BASE_DIR / "app.db"}}
"""
