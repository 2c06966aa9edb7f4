ALTER TABLE outbox RESET (toast_tuple_target);
ALTER TABLE outbox ALTER COLUMN payload SET STORAGE EXTENDED;
