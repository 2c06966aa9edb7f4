-- What exports are made of: one row a ticket, its lines rendered when its evaluation arrived.
CREATE TABLE evaluation_rows (
    ticket_id               TEXT     NOT NULL PRIMARY KEY,
    organization_id         TEXT     NOT NULL,
    conversation_started_at BIGINT   NOT NULL,
    evaluated_at            BIGINT   NOT NULL,
    evaluation_id           TEXT     NOT NULL,
    columns_version         SMALLINT NOT NULL,
    axis_line               TEXT     NOT NULL,
    audit_line              TEXT     NOT NULL
);

-- Filter and order of a file.
CREATE INDEX evaluation_rows_file ON evaluation_rows (organization_id, conversation_started_at, ticket_id);
