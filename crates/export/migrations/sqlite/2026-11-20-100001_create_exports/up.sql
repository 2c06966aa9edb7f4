-- Export jobs. Times are Unix epoch milliseconds, ids are lower-case texts.
CREATE TABLE exports (
    id              TEXT    NOT NULL PRIMARY KEY,
    organization_id TEXT    NOT NULL,
    kind            TEXT    NOT NULL CHECK (kind IN ('axis', 'resolution_audit')),
    filter_from     BIGINT,
    filter_to       BIGINT,
    status          TEXT    NOT NULL CHECK (status IN ('pending', 'running', 'complete', 'failed')),
    created_at      BIGINT  NOT NULL,
    updated_at      BIGINT  NOT NULL,
    -- Who writes the file now. A running job without an owner waits for its next attempt.
    lease_owner     TEXT    CHECK (lease_owner IS NULL OR status = 'running'),
    -- From this moment on anybody may take a running job over.
    lease_until     BIGINT  CHECK ((lease_until IS NOT NULL) = (status = 'running')),
    -- Every claim counts; it names the attempt's file, so it never goes back.
    attempts        INTEGER NOT NULL DEFAULT 0,
    -- Claims that a worker gave back because it was stopping: no fault of the job.
    hand_backs      INTEGER NOT NULL DEFAULT 0,
    object_key      TEXT    CHECK ((object_key IS NOT NULL) = (status = 'complete')),
    file_bytes      BIGINT  CHECK ((file_bytes IS NOT NULL) = (status = 'complete')),
    file_rows       BIGINT  CHECK ((file_rows IS NOT NULL) = (status = 'complete')),
    file_sha256     TEXT    CHECK ((file_sha256 IS NOT NULL) = (status = 'complete')),
    file_expires_at BIGINT  CHECK ((file_expires_at IS NOT NULL) = (status = 'complete')),
    file_removed_at BIGINT,
    error_message   TEXT    CHECK ((error_message IS NOT NULL) = (status = 'failed'))
);

-- The list, newest first.
CREATE INDEX exports_list ON exports (organization_id, created_at DESC, id DESC);
-- What workers look for.
CREATE INDEX exports_open ON exports (created_at, id) WHERE status IN ('pending', 'running');
-- What housekeeping looks for.
CREATE INDEX exports_expiry ON exports (file_expires_at) WHERE status = 'complete' AND file_removed_at IS NULL;

-- pending -> running -> complete | failed, nothing else, whoever writes.
CREATE TRIGGER exports_step BEFORE UPDATE OF status ON exports FOR EACH ROW
    WHEN OLD.status <> NEW.status
     AND OLD.status || ' ' || NEW.status NOT IN ('pending running', 'running complete', 'running failed')
BEGIN
    SELECT RAISE(ABORT, 'an export cannot make this step');
END;
