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
    -- How many times the process ended while it was publishing the event on the local bus, that is while a consumer handled it.
    cut_short INTEGER NOT NULL DEFAULT 0,
    next_attempt_at BIGINT NOT NULL,
    -- Dead: kept for an operator, never published or deleted automatically.
    dead_at BIGINT,
    last_error TEXT
) WITHOUT ROWID;

CREATE INDEX outbox_due ON outbox (next_attempt_at, id) WHERE dead_at IS NULL;
CREATE INDEX outbox_age ON outbox (created_at) WHERE dead_at IS NULL;
CREATE INDEX outbox_dead ON outbox (dead_at, id) WHERE dead_at IS NOT NULL;
-- Events that were cut short twice are published alone. Usually empty.
CREATE INDEX outbox_isolated ON outbox (next_attempt_at, id) WHERE dead_at IS NULL AND cut_short >= 2;

-- Handled events of each consumer, recorded in the transaction of its work: a redelivery changes nothing.
CREATE TABLE inbox (
    consumer TEXT NOT NULL,
    event_id TEXT NOT NULL,
    handled_at BIGINT NOT NULL,
    PRIMARY KEY (consumer, event_id)
) WITHOUT ROWID;

CREATE INDEX inbox_age ON inbox (handled_at);

-- Events that a consumer has taken from the bus and not handled yet: they are handled in a fair order by organization.
CREATE TABLE parked (
    organization_id TEXT NOT NULL,
    event_id TEXT NOT NULL,
    topic TEXT NOT NULL,
    payload TEXT NOT NULL,
    -- Lease of the process that handles the row; after it another process may claim the row.
    claimed_until BIGINT NOT NULL DEFAULT 0,
    -- How often the row was claimed: more than once after a crash or an outage.
    claims INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (organization_id, event_id)
) WITHOUT ROWID;
