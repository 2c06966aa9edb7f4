-- Committed events that are not published yet. Times are Unix epoch milliseconds.
CREATE TABLE outbox (
    id uuid PRIMARY KEY,
    topic text NOT NULL,
    organization_id uuid NOT NULL,
    needs_consumer boolean NOT NULL,
    payload text NOT NULL,
    created_at bigint NOT NULL,
    -- Lease of the relay that is publishing the row; after it another relay may claim the row.
    claimed_until bigint NOT NULL DEFAULT 0,
    attempts integer NOT NULL DEFAULT 0,
    -- How many times the process ended while it was publishing the event on the local bus, that is while a consumer handled it.
    cut_short integer NOT NULL DEFAULT 0,
    next_attempt_at bigint NOT NULL,
    -- Dead: kept for an operator, never published or deleted automatically.
    dead_at bigint,
    last_error text
);

-- Rows are deleted as fast as they are written: vacuum after a fixed number of dead rows, not after a fifth of the table.
ALTER TABLE outbox SET (autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 5000);
-- A row lives for milliseconds: compressing its payload (as PostgreSQL does above 2 kB, which events of evaluations exceed)
-- takes longer than writing and deleting it. Up to about 8 kB the payload stays in its row.
ALTER TABLE outbox ALTER COLUMN payload SET STORAGE EXTERNAL;
ALTER TABLE outbox SET (toast_tuple_target = 8160);

CREATE INDEX outbox_due ON outbox (next_attempt_at, id) WHERE dead_at IS NULL;
CREATE INDEX outbox_age ON outbox (created_at) WHERE dead_at IS NULL;
CREATE INDEX outbox_dead ON outbox (dead_at, id) WHERE dead_at IS NOT NULL;
-- Events that were cut short twice are published alone. Usually empty.
CREATE INDEX outbox_isolated ON outbox (next_attempt_at, id) WHERE dead_at IS NULL AND cut_short >= 2;

-- Handled events of each consumer, recorded in the transaction of its work: a redelivery changes nothing.
CREATE TABLE inbox (
    consumer text NOT NULL,
    event_id uuid NOT NULL,
    handled_at bigint NOT NULL,
    PRIMARY KEY (consumer, event_id)
);

CREATE INDEX inbox_age ON inbox (handled_at);

-- Events that a consumer has taken from the bus and not handled yet: they are handled in a fair order by organization.
CREATE TABLE parked (
    organization_id uuid NOT NULL,
    event_id uuid NOT NULL,
    topic text NOT NULL,
    payload text NOT NULL,
    -- Lease of the process that handles the row; after it another process may claim the row.
    claimed_until bigint NOT NULL DEFAULT 0,
    -- How often the row was claimed: more than once after a crash or an outage.
    claims integer NOT NULL DEFAULT 0,
    PRIMARY KEY (organization_id, event_id)
);

-- Rows are deleted as fast as they are written, as in the outbox.
ALTER TABLE parked SET (autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 5000);
-- A claim updates a row in its place: no new entry in the index.
ALTER TABLE parked SET (fillfactor = 80);
