-- Events that a consumer has taken from the bus and not handled yet: they are handled in a fair order by organization. Times are
-- Unix epoch milliseconds.
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
