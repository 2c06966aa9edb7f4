-- Export jobs. Times are Unix epoch milliseconds, ids lower-case UUIDs.
CREATE TABLE exports (
    id              TEXT    NOT NULL PRIMARY KEY,
    organization_id TEXT    NOT NULL,
    kind            TEXT    NOT NULL CHECK (kind IN ('axis', 'resolution_audit')),
    filter_from     BIGINT,
    filter_to       BIGINT,
    status          TEXT    NOT NULL CHECK (status IN ('pending', 'running', 'complete', 'failed')),
    created_at      BIGINT  NOT NULL,
    updated_at      BIGINT  NOT NULL,
    -- The worker that writes the file. A running job without an owner waits for its next attempt.
    lease_owner     TEXT    CHECK (lease_owner IS NULL OR status = 'running'),
    -- From this time on any worker may claim a running job.
    lease_until     BIGINT  CHECK ((lease_until IS NOT NULL) = (status = 'running')),
    -- Number of claims; part of the name of the attempt's file, so it never decreases.
    attempts        INTEGER NOT NULL DEFAULT 0,
    -- Claims that a worker released because it was stopping: they are no failures of the job.
    released_claims INTEGER NOT NULL DEFAULT 0,
    object_key      TEXT    CHECK ((object_key IS NOT NULL) = (status = 'complete')),
    file_bytes      BIGINT  CHECK ((file_bytes IS NOT NULL) = (status = 'complete')),
    file_rows       BIGINT  CHECK ((file_rows IS NOT NULL) = (status = 'complete')),
    file_sha256     TEXT    CHECK ((file_sha256 IS NOT NULL) = (status = 'complete')),
    file_expires_at BIGINT  CHECK ((file_expires_at IS NOT NULL) = (status = 'complete')),
    file_removed_at BIGINT,
    error_message   TEXT    CHECK ((error_message IS NOT NULL) = (status = 'failed')),
    -- Target: the highest sequence that the file must hold; its worker waits until the read model has all up to it. NULL: not
    -- known.
    target_sequence BIGINT,
    -- How many evaluations had not arrived when the file was written. NULL: not counted.
    missing_evaluations BIGINT,
    -- The filters beyond `filter_from` and `filter_to`, as a query.
    filters         TEXT
);

-- The list, newest first.
CREATE INDEX exports_list ON exports (organization_id, created_at DESC, id DESC);
-- Jobs for the workers.
CREATE INDEX exports_open ON exports (created_at, id) WHERE status IN ('pending', 'running');
-- The open exports of an organization, for its limit and its share of the workers.
CREATE INDEX exports_open_of ON exports (organization_id) WHERE status IN ('pending', 'running');
-- Files whose period is over, and the files of an organization, for maintenance.
CREATE INDEX exports_expiry ON exports (file_expires_at) WHERE status = 'complete' AND file_removed_at IS NULL;
CREATE INDEX exports_kept ON exports (organization_id) WHERE status = 'complete' AND file_removed_at IS NULL;

-- pending -> running -> complete | failed: any other change of status is refused.
CREATE TRIGGER exports_step BEFORE UPDATE OF status ON exports FOR EACH ROW
    WHEN OLD.status <> NEW.status
     AND OLD.status || ' ' || NEW.status NOT IN ('pending running', 'running complete', 'running failed')
BEGIN
    SELECT RAISE(ABORT, 'an export cannot make this step');
END;

-- The read model of exports: one row for each ticket, its CSV lines rendered when its evaluation arrived.
CREATE TABLE evaluation_rows (
    ticket_id               TEXT     NOT NULL PRIMARY KEY,
    organization_id         TEXT     NOT NULL,
    conversation_started_at BIGINT   NOT NULL,
    evaluated_at            BIGINT   NOT NULL,
    evaluation_id           TEXT     NOT NULL,
    columns_version         SMALLINT NOT NULL,
    axis_line               TEXT     NOT NULL,
    audit_line              TEXT     NOT NULL,
    -- Set in tombstones. A deleted ticket keeps its row, so that a late evaluation does not recreate it: without lines, with an
    -- organization id of zeros, and evaluated at the latest time there is, so that no evaluation is newer.
    deleted_at              BIGINT
);

-- Filter and order of a file.
CREATE INDEX evaluation_rows_file ON evaluation_rows (organization_id, conversation_started_at, ticket_id);
CREATE INDEX evaluation_rows_deleted ON evaluation_rows (deleted_at) WHERE deleted_at IS NOT NULL;
-- Expiry: the oldest rows of an organization, whose age is in the ids of their tickets.
CREATE INDEX evaluation_rows_age ON evaluation_rows (organization_id, ticket_id);

-- The watermark of an organization: the read model has every evaluation up to this sequence.
CREATE TABLE progress (
    organization_id TEXT   NOT NULL PRIMARY KEY,
    watermark        BIGINT NOT NULL
) WITHOUT ROWID;

-- Evaluations beyond the watermark: ranges of sequences, both ends included.
CREATE TABLE early_sequences (
    organization_id TEXT   NOT NULL,
    first           BIGINT NOT NULL,
    last            BIGINT NOT NULL,
    -- Arrival of the earliest of them.
    since           BIGINT NOT NULL,
    PRIMARY KEY (organization_id, first)
) WITHOUT ROWID;

-- Evaluations that exports no longer wait for: ranges of sequences, both ends included. One that arrives late leaves its range.
CREATE TABLE skipped_sequences (
    organization_id TEXT   NOT NULL,
    first           BIGINT NOT NULL,
    last            BIGINT NOT NULL,
    -- The evaluations are older than this.
    older_than      BIGINT NOT NULL,
    PRIMARY KEY (organization_id, first)
) WITHOUT ROWID;

-- What lists and summaries read: a row for each ticket with the evaluation that is shown of it, beside the CSV lines in
-- evaluation_rows. Columns of the ticket first, those of the evaluation after them.
CREATE TABLE evaluation_facts (
    ticket_id          TEXT     PRIMARY KEY,
    organization_id    TEXT     NOT NULL,
    started_at         BIGINT   NOT NULL,
    ended_at           BIGINT   NOT NULL,
    imported_at        BIGINT   NOT NULL,
    external_id        TEXT     NOT NULL,
    source             TEXT     NOT NULL,
    source_account_id  TEXT,
    subject            TEXT     NOT NULL,
    -- The words of the subject in lower case, each between spaces.
    subject_words      TEXT     NOT NULL,
    -- JSON: the registered agents that took part.
    agents             TEXT     NOT NULL,
    -- Which evaluation is shown.
    evaluation_id      TEXT     NOT NULL,
    evaluated_at       BIGINT   NOT NULL,
    -- Closed lists, packed: see domain::facets.
    codes              INTEGER  NOT NULL,
    sets               BIGINT   NOT NULL,
    -- Tenths and hundredths.
    axis               SMALLINT,
    resolution_accuracy SMALLINT,
    interaction_effort SMALLINT,
    handoff_smoothness SMALLINT,
    confidence         SMALLINT,
    language           TEXT
);

-- The list, newest first, and the days.
CREATE INDEX evaluation_facts_list ON evaluation_facts (organization_id, started_at, ticket_id);

-- The evaluations of a day (days since 1970-01-01, UTC) in columns: see domain::day.
CREATE TABLE evaluation_days (
    organization_id TEXT    NOT NULL,
    day             BIGINT  NOT NULL,
    -- New with each change: what a process keeps in memory is valid for one version.
    version         TEXT    NOT NULL,
    refreshed_at    BIGINT  NOT NULL,
    rows            BIGINT  NOT NULL,
    packed          BLOB    NOT NULL,
    PRIMARY KEY (organization_id, day)
);

-- Days whose columns lack a change: each transaction that changes rows adds marks of its own, so that removing marks never
-- removes one whose rows were not read.
CREATE TABLE stale_days (
    organization_id TEXT   NOT NULL,
    day             BIGINT NOT NULL,
    marked_at       BIGINT NOT NULL
);
CREATE INDEX stale_days_key ON stale_days (organization_id, day);
-- The oldest mark first: an import of years leaves a million of them.
CREATE INDEX stale_days_oldest ON stale_days (marked_at, day);
