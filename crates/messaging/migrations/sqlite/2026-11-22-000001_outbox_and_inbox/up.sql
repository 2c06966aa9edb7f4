-- Committed events that are not published yet. Times are Unix epoch milliseconds, ids lower-case UUIDs.
CREATE TABLE outbox (
    id TEXT PRIMARY KEY NOT NULL,
    topic TEXT NOT NULL,
    organization_id TEXT NOT NULL,
    needs_consumer BOOLEAN NOT NULL,
    payload TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    -- Lease of the relay that is publishing the row; after it another relay may claim the row.
    claimed_until BIGINT NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0,
    next_attempt_at BIGINT NOT NULL,
    -- Dead: kept for an operator, never published or deleted automatically.
    dead_at BIGINT,
    last_error TEXT
) WITHOUT ROWID;

CREATE INDEX outbox_due ON outbox (next_attempt_at, id) WHERE dead_at IS NULL;
CREATE INDEX outbox_age ON outbox (created_at) WHERE dead_at IS NULL;
CREATE INDEX outbox_dead ON outbox (dead_at, id) WHERE dead_at IS NOT NULL;

-- Handled events of each consumer, recorded in the transaction of its work: a redelivery changes nothing.
CREATE TABLE inbox (
    consumer TEXT NOT NULL,
    event_id TEXT NOT NULL,
    handled_at BIGINT NOT NULL,
    PRIMARY KEY (consumer, event_id)
) WITHOUT ROWID;

CREATE INDEX inbox_age ON inbox (handled_at);
