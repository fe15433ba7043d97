-- Version 2 of our tables as version 3 has them, for a store on a medium that cannot be written.
CREATE TEMP VIEW savedsearch_file AS SELECT data_file_id, schema, first, last, digest FROM main.savedsearch_region_file;
CREATE TEMP VIEW savedsearch_delete_file AS SELECT NULL AS delete_file_id, NULL AS digest WHERE false;
CREATE TEMP VIEW savedsearch_region_file AS SELECT region, data_file_id, 0 AS first_row FROM main.savedsearch_region_file
    WHERE region IN (SELECT region FROM main.savedsearch_region_file GROUP BY region HAVING count(*) = 1);
