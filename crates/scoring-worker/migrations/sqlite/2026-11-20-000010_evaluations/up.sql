CREATE TABLE evaluations (
    ticket_id blob NOT NULL PRIMARY KEY,
    id blob NOT NULL,
    organization_id blob NOT NULL,
    status text NOT NULL CHECK (status IN ('scored', 'not_applicable', 'failed')),
    document text,
    error_message text,
    scorer_version text NOT NULL,
    created_at bigint NOT NULL,
    CHECK ((status = 'failed') = (document IS NULL))
) WITHOUT ROWID;
