-- One evaluation for each ticket. Partitioned by the ticket's id, a UUID of version 7: by the month of its import.
CREATE TABLE evaluations (
    ticket_id uuid NOT NULL,
    id uuid NOT NULL,
    organization_id uuid NOT NULL,
    status text NOT NULL CHECK (status IN ('scored', 'not_applicable', 'failed')),
    -- The evaluation as JSON text, byte for byte as it was made; absent when it failed.
    document text,
    error_message text,
    scorer_version text NOT NULL,
    created_at bigint NOT NULL,
    PRIMARY KEY (ticket_id),
    CHECK ((status = 'failed') = (document IS NULL))
) PARTITION BY RANGE (ticket_id);

CREATE TABLE evaluations_default PARTITION OF evaluations DEFAULT;
