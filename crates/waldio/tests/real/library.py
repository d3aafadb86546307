"""Loads the library under test: what is opened afterwards has it."""

import os
import sqlite3


def load():
    loader = sqlite3.connect(":memory:")
    loader.enable_load_extension(True)
    loader.load_extension(os.environ["WALDIO_LIBRARY"])
