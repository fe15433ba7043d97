-- From version 2 of our tables, in which each region had files of its own, to version 3, in which regions share files.
-- A region of several files is forgotten, because the order of their rows is unknown.
DELETE FROM savedsearch_coverage WHERE id IN (
    SELECT region FROM savedsearch_region_file GROUP BY region HAVING count(*) > 1
);
ALTER TABLE savedsearch_region_file RENAME TO savedsearch_region_file_2;
CREATE TABLE savedsearch_region_file (
    region INTEGER PRIMARY KEY, data_file_id INTEGER NOT NULL, first_row INTEGER NOT NULL
);
CREATE INDEX savedsearch_region_file_of ON savedsearch_region_file (data_file_id);
CREATE TABLE savedsearch_file (
    data_file_id INTEGER PRIMARY KEY, schema INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
    digest TEXT NOT NULL
);
CREATE TABLE savedsearch_delete_file (delete_file_id INTEGER PRIMARY KEY, digest TEXT NOT NULL);
INSERT INTO savedsearch_file SELECT data_file_id, schema, first, last, digest FROM savedsearch_region_file_2;
INSERT INTO savedsearch_region_file SELECT region, data_file_id, 0 FROM savedsearch_region_file_2
    WHERE region IN (SELECT id FROM savedsearch_coverage);
UPDATE ducklake_data_file SET end_snapshot = (SELECT max(snapshot_id) FROM ducklake_snapshot)
    WHERE table_id IN (1, 2) AND end_snapshot IS NULL
        AND data_file_id IN (SELECT data_file_id FROM savedsearch_file)
        AND data_file_id NOT IN (SELECT data_file_id FROM savedsearch_region_file);
DROP TABLE savedsearch_region_file_2;
CREATE INDEX savedsearch_deletes_of ON ducklake_delete_file (data_file_id);
UPDATE savedsearch_store SET version = 3;
