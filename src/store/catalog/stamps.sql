-- The commits of mentions. An older version of this program does not know these tables: `savedsearch_recorded` tells what it
-- has committed.
CREATE TABLE savedsearch_stamps (region INTEGER PRIMARY KEY, stamps BLOB NOT NULL);
-- The commit in which the mentions of a file of deleted mentions were deleted.
CREATE TABLE savedsearch_deleted_stamp (data_file_id INTEGER PRIMARY KEY, snapshot INTEGER NOT NULL, at INTEGER NOT NULL);
-- One row: all commits after snapshot `first`, which was made at `first_at`, up to `latest` are recorded. Of a store that was
-- created with these tables, all are.
CREATE TABLE savedsearch_recorded (first INTEGER NOT NULL, first_at INTEGER NOT NULL, latest INTEGER NOT NULL);
