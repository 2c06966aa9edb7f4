DROP INDEX outbox_alone;
ALTER TABLE outbox DROP COLUMN cut_short;
