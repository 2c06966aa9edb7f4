-- How many evaluations had not arrived when the file was written. NULL: not counted, also in jobs of earlier releases.
ALTER TABLE exports ADD COLUMN missing_evaluations bigint;

-- The open exports of an organization, for its limit and its share of the workers.
CREATE INDEX exports_open_of ON exports (organization_id) WHERE status IN ('pending', 'running');

-- Evaluations that exports no longer wait for: ranges of sequences, both ends included. One that arrives late leaves its range.
CREATE TABLE skipped_sequences (
    organization_id uuid   NOT NULL,
    first           bigint NOT NULL,
    last            bigint NOT NULL,
    -- The evaluations are older than this.
    older_than      bigint NOT NULL,
    PRIMARY KEY (organization_id, first)
);
