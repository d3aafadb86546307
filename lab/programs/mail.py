#!/usr/bin/env python3
"""A mail program: an account is set up, and its newest messages arrive. As the email app of FAST'12.

A message is a row in one database, its text one in another, each a commit; some have an attachment, a file.
"""
import common

MESSAGES = 25
ATTACHMENTS = 5
ATTACHMENT_BYTES = 400 * common.KB
MESSAGE_S = 0.3

PROVIDER = (
    "CREATE TABLE account(_id INTEGER PRIMARY KEY, name TEXT, address TEXT)",
    "CREATE TABLE mailbox(_id INTEGER PRIMARY KEY, name TEXT, unread INTEGER)",
    "CREATE TABLE message(_id INTEGER PRIMARY KEY, mailbox INTEGER, sender TEXT, subject TEXT, snippet TEXT)",
    "CREATE INDEX message_mailbox ON message(mailbox)",
)
BODIES = ("CREATE TABLE body(_id INTEGER PRIMARY KEY, message INTEGER, html TEXT)",)
MAILBOXES = ("Inbox", "Drafts", "Outbox", "Sent", "Trash")
DECLARED = common.Declared(
    files=ATTACHMENTS,
    file_bytes=ATTACHMENT_BYTES,
    commits=2 + 1 + len(MAILBOXES) + 3 * MESSAGES,
    received_bytes=ATTACHMENT_BYTES + MESSAGES * 5 * common.KB,
)


def run(app):
    provider = app.database("databases/EmailProvider.db", PROVIDER)
    bodies = app.database("databases/EmailProviderBody.db", BODIES)
    app.think(2)
    provider.commit([("INSERT INTO account(name, address) VALUES (?, ?)", ("me", "me@mail.example"))])
    for name in MAILBOXES:
        provider.commit([("INSERT INTO mailbox(name, unread) VALUES (?, 0)", (name,))])
    for number in range(MESSAGES):
        app.receive(5 * common.KB)
        message = (1, app.text(24), app.text(60), app.text(100))
        provider.commit([("INSERT INTO message(mailbox, sender, subject, snippet) VALUES (?, ?, ?, ?)", message)])
        bodies.commit([("INSERT INTO body(message, html) VALUES (?, ?)", (number + 1, app.text(3500)))])
        provider.commit([("UPDATE mailbox SET unread = unread + 1 WHERE _id = 1", ())])
        if number % (MESSAGES // ATTACHMENTS) == 0:
            app.receive(ATTACHMENT_BYTES // ATTACHMENTS)
            app.write(f"attachments/{number}", ATTACHMENT_BYTES // ATTACHMENTS)
        app.think(MESSAGE_S)
    bodies.close()
    provider.close()


if __name__ == "__main__":
    common.main(__doc__, DECLARED, run)
