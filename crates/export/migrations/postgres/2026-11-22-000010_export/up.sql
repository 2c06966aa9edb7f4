-- Export jobs. Times are Unix epoch milliseconds.
CREATE TABLE exports (
    id              uuid    PRIMARY KEY,
    organization_id uuid    NOT NULL,
    kind            text    NOT NULL CHECK (kind IN ('axis', 'resolution_audit')),
    filter_from     bigint,
    filter_to       bigint,
    status          text    NOT NULL CHECK (status IN ('pending', 'running', 'complete', 'failed')),
    created_at      bigint  NOT NULL,
    updated_at      bigint  NOT NULL,
    -- The worker that writes the file. A running job without an owner waits for its next attempt.
    lease_owner     uuid    CHECK (lease_owner IS NULL OR status = 'running'),
    -- From this time on any worker may claim a running job.
    lease_until     bigint  CHECK ((lease_until IS NOT NULL) = (status = 'running')),
    -- Number of claims; part of the name of the attempt's file, so it never decreases.
    attempts        integer NOT NULL DEFAULT 0,
    -- Claims that a worker released because it was stopping: they are no failures of the job.
    hand_backs      integer NOT NULL DEFAULT 0,
    object_key      text    CHECK ((object_key IS NOT NULL) = (status = 'complete')),
    file_bytes      bigint  CHECK ((file_bytes IS NOT NULL) = (status = 'complete')),
    file_rows       bigint  CHECK ((file_rows IS NOT NULL) = (status = 'complete')),
    file_sha256     text    CHECK ((file_sha256 IS NOT NULL) = (status = 'complete')),
    file_expires_at bigint  CHECK ((file_expires_at IS NOT NULL) = (status = 'complete')),
    file_removed_at bigint,
    error_message   text    CHECK ((error_message IS NOT NULL) = (status = 'failed')),
    -- Target: the highest sequence that the file must hold; its worker waits until the read model has all up to it. NULL: not
    -- known.
    awaited_evaluations bigint
);

-- The list, newest first.
CREATE INDEX exports_list ON exports (organization_id, created_at DESC, id DESC);
-- Jobs for the workers.
CREATE INDEX exports_open ON exports (created_at, id) WHERE status IN ('pending', 'running');
-- Files whose period is over, and the files of an organization, for maintenance.
CREATE INDEX exports_expiry ON exports (file_expires_at) WHERE status = 'complete' AND file_removed_at IS NULL;
CREATE INDEX exports_kept ON exports (organization_id) WHERE status = 'complete' AND file_removed_at IS NULL;

-- pending -> running -> complete | failed: any other change of status is refused.
CREATE FUNCTION refuse_export_step() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'export % cannot go from % to %', OLD.id, OLD.status, NEW.status
        USING ERRCODE = 'check_violation';
END $$;

CREATE TRIGGER exports_step BEFORE UPDATE OF status ON exports FOR EACH ROW
    WHEN (OLD.status <> NEW.status AND (OLD.status, NEW.status) NOT IN
          (('pending', 'running'), ('running', 'complete'), ('running', 'failed')))
    EXECUTE FUNCTION refuse_export_step();

-- The read model of exports: one row for each ticket, its CSV lines rendered when its evaluation arrived. Partitioned by
-- month: a ticket id is a UUID of version 7, which begins with its time of creation.
CREATE TABLE evaluation_rows (
    ticket_id               uuid     PRIMARY KEY,
    organization_id         uuid     NOT NULL,
    conversation_started_at bigint   NOT NULL,
    evaluated_at            bigint   NOT NULL,
    evaluation_id           uuid     NOT NULL,
    columns_version         smallint NOT NULL,
    axis_line               text     NOT NULL,
    audit_line              text     NOT NULL,
    -- Set in tombstones. A deleted ticket keeps its row, so that a late evaluation does not recreate it: without lines, with an
    -- organization id of zeros, and evaluated at the latest time there is, so that no evaluation is newer.
    deleted_at              bigint
) PARTITION BY RANGE (ticket_id);

-- For ids of months that have no partition (yet).
CREATE TABLE evaluation_rows_default PARTITION OF evaluation_rows DEFAULT;

-- Filter and order of a file.
CREATE INDEX evaluation_rows_file ON evaluation_rows (organization_id, conversation_started_at, ticket_id);
CREATE INDEX evaluation_rows_deleted ON evaluation_rows (deleted_at) WHERE deleted_at IS NOT NULL;
-- Expiry: the oldest rows of an organization, whose age is in the ids of their tickets.
CREATE INDEX evaluation_rows_age ON evaluation_rows (organization_id, ticket_id);

-- The watermark of an organization: the read model has every evaluation up to this sequence.
CREATE TABLE progress (
    organization_id uuid   PRIMARY KEY,
    taken_in        bigint NOT NULL
);

-- Evaluations beyond the watermark: ranges of sequences, both ends included.
CREATE TABLE early_arrivals (
    organization_id uuid   NOT NULL,
    first           bigint NOT NULL,
    last            bigint NOT NULL,
    -- Arrival of the earliest of them.
    since           bigint NOT NULL,
    PRIMARY KEY (organization_id, first)
);
