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

-- The filters of an export beyond `from` and `to`, as a query.
ALTER TABLE exports ADD COLUMN filters TEXT;

-- Rows of earlier builds have no facts, so that lists and exports would disagree; nothing was released with them. Their
-- database is refused with this name.
CREATE TABLE refused (
    found INTEGER CONSTRAINT evaluations_of_a_build_before_0_1_0_cannot_be_listed_export_what_you_need_with_that_build_then_start_with_empty_databases_of_all_services CHECK (found = 0)
);
INSERT INTO refused SELECT 1 FROM evaluation_rows WHERE deleted_at IS NULL LIMIT 1;
DROP TABLE refused;
