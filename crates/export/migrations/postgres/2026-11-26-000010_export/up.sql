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
    released_claims integer NOT NULL DEFAULT 0,
    object_key      text    CHECK ((object_key IS NOT NULL) = (status = 'complete')),
    file_bytes      bigint  CHECK ((file_bytes IS NOT NULL) = (status = 'complete')),
    file_rows       bigint  CHECK ((file_rows IS NOT NULL) = (status = 'complete')),
    file_sha256     text    CHECK ((file_sha256 IS NOT NULL) = (status = 'complete')),
    file_expires_at bigint  CHECK ((file_expires_at IS NOT NULL) = (status = 'complete')),
    file_removed_at bigint,
    error_message   text    CHECK ((error_message IS NOT NULL) = (status = 'failed')),
    -- Target: the highest sequence that the file must hold; its worker waits until the read model has all up to it. NULL: not
    -- known.
    target_sequence bigint,
    -- How many evaluations had not arrived when the file was written. NULL: not counted.
    missing_evaluations bigint,
    -- The filters beyond `filter_from` and `filter_to`, as a query.
    filters         text
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
    watermark        bigint NOT NULL
);

-- Evaluations beyond the watermark: ranges of sequences, both ends included.
CREATE TABLE early_sequences (
    organization_id uuid   NOT NULL,
    first           bigint NOT NULL,
    last            bigint NOT NULL,
    -- Arrival of the earliest of them.
    since           bigint NOT NULL,
    PRIMARY KEY (organization_id, first)
);

-- Evaluations that exports no longer wait for: ranges of sequences, both ends included. One that arrives late leaves its range.
CREATE TABLE skipped_sequences (
    organization_id uuid   NOT NULL,
    first           bigint NOT NULL,
    last            bigint NOT NULL,
    -- The evaluations are older than this.
    older_than      bigint NOT NULL,
    PRIMARY KEY (organization_id, first)
);

-- What lists and summaries read: a row for each ticket with the evaluation that is shown of it, beside the CSV lines in
-- evaluation_rows. Columns of the ticket first, those of the evaluation after them.
CREATE TABLE evaluation_facts (
    ticket_id          uuid     PRIMARY KEY,
    organization_id    uuid     NOT NULL,
    started_at         bigint   NOT NULL,
    ended_at           bigint   NOT NULL,
    imported_at        bigint   NOT NULL,
    external_id        text     NOT NULL,
    source             text     NOT NULL,
    source_account_id  text,
    subject            text     NOT NULL,
    -- The words of the subject in lower case, each between spaces.
    subject_words      text     NOT NULL,
    -- JSON: the registered agents that took part.
    agents             text     NOT NULL,
    -- Which evaluation is shown.
    evaluation_id      uuid     NOT NULL,
    evaluated_at       bigint   NOT NULL,
    -- Closed lists, packed: see domain::facets.
    codes              integer  NOT NULL,
    sets               bigint   NOT NULL,
    -- Tenths and hundredths.
    axis               smallint,
    resolution_accuracy smallint,
    interaction_effort smallint,
    handoff_smoothness smallint,
    confidence         smallint,
    language           text,
    -- The values of all filters: see domain::terms.
    terms              integer[] NOT NULL
) PARTITION BY RANGE (ticket_id);
CREATE TABLE evaluation_facts_default PARTITION OF evaluation_facts DEFAULT;

-- The list, newest first, and the days.
CREATE INDEX evaluation_facts_list ON evaluation_facts (organization_id, started_at, ticket_id);
-- Rare values of any filter. A short list of pending entries, because every search reads all of it.
CREATE INDEX evaluation_facts_terms ON evaluation_facts USING gin (terms) WITH (gin_pending_list_limit = 512);

-- The evaluations of a day (days since 1970-01-01, UTC) in columns: see domain::day.
CREATE TABLE evaluation_days (
    organization_id uuid    NOT NULL,
    day             bigint  NOT NULL,
    -- New with each change: what a process keeps in memory is valid for one version.
    version         uuid    NOT NULL,
    refreshed_at    bigint  NOT NULL,
    rows            bigint  NOT NULL,
    packed          bytea   NOT NULL,
    PRIMARY KEY (organization_id, day)
);
ALTER TABLE evaluation_days ALTER COLUMN packed SET STORAGE EXTERNAL;

-- Days whose columns lack a change: each transaction that changes rows adds marks of its own, so that removing marks never
-- removes one whose rows were not read.
CREATE TABLE stale_days (
    organization_id uuid   NOT NULL,
    day             bigint NOT NULL,
    marked_at       bigint NOT NULL
);
CREATE INDEX stale_days_key ON stale_days (organization_id, day);
-- The oldest mark first: an import of years leaves a million of them.
CREATE INDEX stale_days_oldest ON stale_days (marked_at, day);
