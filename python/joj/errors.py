"""Why there is no answer: what, where, and how to mend it."""


class JojError(Exception):
    """Something that the user can mend; its text says how."""


class NewerFile(JojError):
    """A file is of a version that this package does not know."""
