CREATE TABLE early_arrivals (
    organization_id text   NOT NULL,
    first           bigint NOT NULL,
    last            bigint NOT NULL,
    since           bigint NOT NULL,
    PRIMARY KEY (organization_id, first)
) WITHOUT ROWID;
