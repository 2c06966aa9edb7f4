-- A row lives for milliseconds: to compress its payload (what PostgreSQL does with rows of more than 2 kB, and events of
-- evaluations are) takes longer than to write and to remove it. Up to about 8 kB it stays in its row.
ALTER TABLE outbox ALTER COLUMN payload SET STORAGE EXTERNAL;
ALTER TABLE outbox SET (toast_tuple_target = 8160);
