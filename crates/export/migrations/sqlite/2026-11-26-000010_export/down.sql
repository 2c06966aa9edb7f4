DROP TABLE stale_days;
DROP TABLE evaluation_days;
DROP TABLE evaluation_facts;
DROP TABLE skipped_sequences;
DROP TABLE early_sequences;
DROP TABLE progress;
DROP TABLE evaluation_rows;
DROP TABLE exports;
