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

-- The filters of an export beyond `from` and `to`, as a query.
ALTER TABLE exports ADD COLUMN filters text;

-- Rows of earlier builds have no facts, so that lists and exports would disagree; scoring-worker publishes an evaluation once, and
-- nothing was released with them. Their database is refused. Only the message of an error is logged, not its hint.
DO $$
BEGIN
    IF EXISTS (SELECT FROM evaluation_rows WHERE deleted_at IS NULL) THEN
        RAISE EXCEPTION 'evaluation_rows holds evaluations of a build before 0.1.0, which cannot be listed: export what you need '
            'with that build, then start with empty databases of all services';
    END IF;
END $$;
