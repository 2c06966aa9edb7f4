-- Evaluations are numbered for each organization. These came before one with a smaller number: ranges of numbers beyond
-- progress.taken_in, both ends included.
CREATE TABLE early_arrivals (
    organization_id uuid   NOT NULL,
    first           bigint NOT NULL,
    last            bigint NOT NULL,
    -- When the first of them came, Unix epoch milliseconds.
    since           bigint NOT NULL,
    PRIMARY KEY (organization_id, first)
);
