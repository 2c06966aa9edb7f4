-- Times are Unix epoch milliseconds, ids lower-case UUIDs.

-- One evaluation for each ticket.
CREATE TABLE evaluations (
    ticket_id TEXT NOT NULL PRIMARY KEY,
    id TEXT NOT NULL,
    organization_id TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('scored', 'not_applicable', 'failed')),
    -- The evaluation as JSON text, byte for byte as it was made; absent when it failed.
    document TEXT,
    error_message TEXT,
    scorer_version TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    -- Set in tombstones. A deleted ticket keeps its row, so that a late evaluation does not recreate it: status 'failed', no
    -- document, no message, and an organization id of zeros.
    deleted_at BIGINT,
    -- A failed evaluation whose event became a dead letter: a later evaluation replaces it.
    given_up BOOLEAN NOT NULL DEFAULT FALSE,
    CHECK ((status = 'failed') = (document IS NULL))
) WITHOUT ROWID;

CREATE INDEX evaluations_deleted ON evaluations (deleted_at) WHERE deleted_at IS NOT NULL;
-- Expiry: the oldest evaluations of an organization, whose age is in the ids of their tickets.
CREATE INDEX evaluations_age ON evaluations (organization_id, ticket_id);

-- How many evaluations of an organization were ever recorded: the sequence of the newest. An export waits until the read
-- model has all of them.
CREATE TABLE progress (
    organization_id TEXT NOT NULL PRIMARY KEY,
    evaluated BIGINT NOT NULL
) WITHOUT ROWID;
