-- What exports are made of: one row a ticket, its lines rendered when its evaluation arrived. Months are partitions:
-- a ticket id is a UUID of version 7, which begins with its time of creation.
CREATE TABLE evaluation_rows (
    ticket_id               uuid     PRIMARY KEY,
    organization_id         uuid     NOT NULL,
    conversation_started_at bigint   NOT NULL,
    evaluated_at            bigint   NOT NULL,
    evaluation_id           uuid     NOT NULL,
    columns_version         smallint NOT NULL,
    axis_line               text     NOT NULL,
    audit_line              text     NOT NULL
) PARTITION BY RANGE (ticket_id);

-- For ids of months that have no partition of their own (yet).
CREATE TABLE evaluation_rows_default PARTITION OF evaluation_rows DEFAULT;

-- Filter and order of a file.
CREATE INDEX evaluation_rows_file ON evaluation_rows (organization_id, conversation_started_at, ticket_id);
