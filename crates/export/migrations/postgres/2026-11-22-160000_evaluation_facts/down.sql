ALTER TABLE exports DROP COLUMN filters;
DROP TABLE stale_days;
DROP TABLE evaluation_days;
DROP TABLE evaluation_facts;
