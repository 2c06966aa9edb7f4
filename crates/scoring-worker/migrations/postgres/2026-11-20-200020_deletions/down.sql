DROP INDEX evaluations_age;
DROP INDEX evaluations_deleted;
DELETE FROM evaluations WHERE deleted_at IS NOT NULL;
ALTER TABLE evaluations DROP COLUMN deleted_at;
