DROP TABLE early_arrivals;
DROP TABLE progress;
DROP TABLE evaluation_rows;
DROP TABLE exports;
DROP FUNCTION refuse_export_step();
