-- Times are Unix epoch milliseconds.

-- One evaluation for each ticket. Partitioned by the ticket id, a UUID of version 7: by the month of its import.
CREATE TABLE evaluations (
    ticket_id uuid NOT NULL PRIMARY KEY,
    id uuid NOT NULL,
    organization_id uuid NOT NULL,
    status text NOT NULL CHECK (status IN ('scored', 'not_applicable', 'failed')),
    -- The evaluation as JSON text, byte for byte as it was made; absent when it failed.
    document text,
    error_message text,
    scorer_version text NOT NULL,
    created_at bigint NOT NULL,
    -- Set in tombstones. A deleted ticket keeps its row, so that a late evaluation does not recreate it: status 'failed', no
    -- document, no message, and an organization id of zeros.
    deleted_at bigint,
    -- A failed evaluation whose event became a dead letter: a later evaluation replaces it.
    given_up boolean NOT NULL DEFAULT false,
    CHECK ((status = 'failed') = (document IS NULL))
) PARTITION BY RANGE (ticket_id);

CREATE TABLE evaluations_default PARTITION OF evaluations DEFAULT;

-- LZ4 takes a fourth of the time of PostgreSQL's own compression, for a tenth more bytes. Later partitions inherit the
-- setting. A server that was built without LZ4 keeps its default, with a warning.
DO $$
DECLARE
    part regclass;
BEGIN
    FOR part IN SELECT relid FROM pg_partition_tree('evaluations') LOOP
        EXECUTE format('ALTER TABLE %s ALTER COLUMN document SET COMPRESSION lz4', part);
    END LOOP;
EXCEPTION WHEN feature_not_supported THEN
    RAISE WARNING 'this server has no LZ4: evaluations are compressed by pglz, which takes four times as long';
END $$;

CREATE INDEX evaluations_deleted ON evaluations (deleted_at) WHERE deleted_at IS NOT NULL;
-- Expiry: the oldest evaluations of an organization, whose age is in the ids of their tickets.
CREATE INDEX evaluations_age ON evaluations (organization_id, ticket_id);

-- How many evaluations of an organization were ever recorded: the sequence of the newest. An export waits until the read
-- model has all of them.
CREATE TABLE progress (
    organization_id uuid NOT NULL PRIMARY KEY,
    evaluated bigint NOT NULL
);
