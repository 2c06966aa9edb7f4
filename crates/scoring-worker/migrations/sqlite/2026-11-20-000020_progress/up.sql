CREATE TABLE progress (
    organization_id text NOT NULL PRIMARY KEY,
    evaluated bigint NOT NULL
) WITHOUT ROWID;
