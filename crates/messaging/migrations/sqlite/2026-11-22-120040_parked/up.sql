-- Events that a consumer has taken from the bus and not handled yet: they are handled in a fair order by organization. Times are
-- Unix epoch milliseconds, ids lower-case UUIDs.
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
