DROP TABLE skipped_sequences;
DROP INDEX exports_open_of;
ALTER TABLE exports DROP COLUMN missing_evaluations;
