CREATE TABLE progress (
    organization_id blob NOT NULL PRIMARY KEY,
    evaluated bigint NOT NULL
) WITHOUT ROWID;
