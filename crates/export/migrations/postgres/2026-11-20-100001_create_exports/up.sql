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
    -- Who writes the file now. A running job without an owner waits for its next attempt.
    lease_owner     uuid    CHECK (lease_owner IS NULL OR status = 'running'),
    -- From this moment on anybody may take a running job over.
    lease_until     bigint  CHECK ((lease_until IS NOT NULL) = (status = 'running')),
    -- Every claim counts; it names the attempt's file, so it never goes back.
    attempts        integer NOT NULL DEFAULT 0,
    -- Claims that a worker gave back because it was stopping: no fault of the job.
    hand_backs      integer NOT NULL DEFAULT 0,
    object_key      text    CHECK ((object_key IS NOT NULL) = (status = 'complete')),
    file_bytes      bigint  CHECK ((file_bytes IS NOT NULL) = (status = 'complete')),
    file_rows       bigint  CHECK ((file_rows IS NOT NULL) = (status = 'complete')),
    file_sha256     text    CHECK ((file_sha256 IS NOT NULL) = (status = 'complete')),
    file_expires_at bigint  CHECK ((file_expires_at IS NOT NULL) = (status = 'complete')),
    file_removed_at bigint,
    error_message   text    CHECK ((error_message IS NOT NULL) = (status = 'failed'))
);

-- The list, newest first.
CREATE INDEX exports_list ON exports (organization_id, created_at DESC, id DESC);
-- What workers look for.
CREATE INDEX exports_open ON exports (created_at, id) WHERE status IN ('pending', 'running');
-- What housekeeping looks for.
CREATE INDEX exports_expiry ON exports (file_expires_at) WHERE status = 'complete' AND file_removed_at IS NULL;

-- pending -> running -> complete | failed, nothing else, whoever writes.
CREATE FUNCTION refuse_export_step() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'export % cannot go from % to %', OLD.id, OLD.status, NEW.status
        USING ERRCODE = 'check_violation';
END $$;

CREATE TRIGGER exports_step BEFORE UPDATE OF status ON exports FOR EACH ROW
    WHEN (OLD.status <> NEW.status AND (OLD.status, NEW.status) NOT IN
          (('pending', 'running'), ('running', 'complete'), ('running', 'failed')))
    EXECUTE FUNCTION refuse_export_step();
