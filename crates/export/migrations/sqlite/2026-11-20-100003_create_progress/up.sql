CREATE TABLE progress (
    organization_id text   NOT NULL PRIMARY KEY,
    taken_in        bigint NOT NULL
) WITHOUT ROWID;

ALTER TABLE exports ADD COLUMN awaited_evaluations bigint;
