CREATE TABLE evaluations (
    ticket_id text NOT NULL PRIMARY KEY,
    id text NOT NULL,
    organization_id text NOT NULL,
    status text NOT NULL CHECK (status IN ('scored', 'not_applicable', 'failed')),
    document text,
    error_message text,
    scorer_version text NOT NULL,
    created_at bigint NOT NULL,
    CHECK ((status = 'failed') = (document IS NULL))
) WITHOUT ROWID;
