-- Events that are true (they were committed with what they tell of) and not on the bus yet.
-- Times are Unix epoch milliseconds.
CREATE TABLE outbox (
    id uuid PRIMARY KEY,
    topic text NOT NULL,
    organization_id uuid NOT NULL,
    needs_consumer boolean NOT NULL,
    payload text NOT NULL,
    created_at bigint NOT NULL,
    -- A relay is publishing the row until then; a relay that dies leaves it to the next one.
    claimed_until bigint NOT NULL DEFAULT 0,
    attempts integer NOT NULL DEFAULT 0,
    next_attempt_at bigint NOT NULL,
    -- Given up: waits for an operator, is never published by itself and never removed.
    dead_at bigint,
    last_error text
);

CREATE INDEX outbox_due ON outbox (next_attempt_at, id) WHERE dead_at IS NULL;
CREATE INDEX outbox_age ON outbox (created_at) WHERE dead_at IS NULL;
CREATE INDEX outbox_dead ON outbox (dead_at, id) WHERE dead_at IS NOT NULL;

-- Rows come and go all the time: clean up after few of them rather than after a fifth of the table.
ALTER TABLE outbox SET (autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 5000);
