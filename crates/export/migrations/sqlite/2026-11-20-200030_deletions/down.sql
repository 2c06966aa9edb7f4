DROP INDEX exports_kept;
DROP INDEX evaluation_rows_age;
DROP INDEX evaluation_rows_deleted;
DELETE FROM evaluation_rows WHERE deleted_at IS NOT NULL;
ALTER TABLE evaluation_rows DROP COLUMN deleted_at;
