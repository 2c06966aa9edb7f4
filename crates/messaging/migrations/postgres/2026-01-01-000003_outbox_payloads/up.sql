-- A row lives for milliseconds: compressing its payload (as PostgreSQL does above 2 kB, which events of evaluations exceed)
-- takes longer than writing and deleting it. Up to about 8 kB the payload stays in its row.
ALTER TABLE outbox ALTER COLUMN payload SET STORAGE EXTERNAL;
ALTER TABLE outbox SET (toast_tuple_target = 8160);
