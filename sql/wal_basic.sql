-- What an application does all day, with a second connection that looks on.
PRAGMA journal_mode=WAL;
PRAGMA synchronous=FULL;
CREATE TABLE note(id INTEGER PRIMARY KEY, value TEXT);
CREATE INDEX note_value ON note(value);
INSERT INTO note(value) VALUES ('first'), ('second'), ('third');
UPDATE note SET value = 'changed' WHERE id = 2;
DELETE FROM note WHERE id = 1;
.connection 1
.open test.db
SELECT * FROM note ORDER BY id;
INSERT INTO note(value) VALUES ('from the other');
.connection 0
SELECT * FROM note ORDER BY id;
BEGIN;
INSERT INTO note(value) VALUES ('never');
.connection 1
SELECT count(*) AS before_rollback FROM note;
.connection 0
ROLLBACK;
SELECT count(*) AS after_rollback FROM note;
PRAGMA integrity_check;
