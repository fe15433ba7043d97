-- Our own tables, next to those of DuckLake. Instants are microseconds since 1970, days are counted from 1970-01-01.
CREATE TABLE savedsearch_store (
    version INTEGER NOT NULL, owner TEXT NOT NULL, created_at TEXT NOT NULL
);
-- The columns of each version, with their ids in DuckLake, which are the field ids in the files.
CREATE TABLE savedsearch_column (
    schema INTEGER NOT NULL, position INTEGER NOT NULL, name TEXT NOT NULL, kind TEXT NOT NULL, id INTEGER NOT NULL,
    source TEXT NOT NULL,
    PRIMARY KEY (schema, position)
);
-- The regions. `filters` is a JSON object, `{}` for none; `counts` has the number of each day, separated by commas.
CREATE TABLE savedsearch_coverage (
    id INTEGER PRIMARY KEY AUTOINCREMENT, aid TEXT NOT NULL, filters TEXT NOT NULL, from_day INTEGER NOT NULL,
    to_day INTEGER NOT NULL, counts TEXT NOT NULL, as_of INTEGER NOT NULL, confirmed INTEGER NOT NULL,
    sealed INTEGER NOT NULL, snapshot INTEGER NOT NULL
);
CREATE INDEX savedsearch_coverage_subject ON savedsearch_coverage (aid, filters, from_day);
-- The place of the mentions of each region: as many consecutive rows of a file as `counts` adds up to.
CREATE TABLE savedsearch_region_file (
    region INTEGER PRIMARY KEY, data_file_id INTEGER NOT NULL, first_row INTEGER NOT NULL
);
CREATE INDEX savedsearch_region_file_of ON savedsearch_region_file (data_file_id);
-- The files of regions, with the version of their columns, the first and last instant in them, and the SHA-256 digest of
-- their contents.
CREATE TABLE savedsearch_file (
    data_file_id INTEGER PRIMARY KEY, schema INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
    digest TEXT NOT NULL
);
-- Those of DuckLake's delete files that this program wrote. They name the rows that no region has.
CREATE TABLE savedsearch_delete_file (delete_file_id INTEGER PRIMARY KEY, digest TEXT NOT NULL);
-- The files of mentions that the service no longer has.
CREATE TABLE savedsearch_deleted (
    data_file_id INTEGER PRIMARY KEY, aid TEXT NOT NULL, schema INTEGER NOT NULL, first INTEGER NOT NULL,
    last INTEGER NOT NULL, digest TEXT NOT NULL
);
-- Responses without mentions, by request.
CREATE TABLE savedsearch_answer (key TEXT PRIMARY KEY, body BLOB NOT NULL, as_of INTEGER NOT NULL);
CREATE INDEX savedsearch_answer_age ON savedsearch_answer (as_of);
CREATE TABLE savedsearch_cursor (name TEXT PRIMARY KEY, value TEXT NOT NULL);
