-- Responses to requests with an Idempotency-Key. Only successes; replayed for 24 hours.
CREATE TABLE idempotency_keys (
    organization_id uuid     NOT NULL,
    key             text     NOT NULL,
    fingerprint     bytea    NOT NULL,
    status          smallint NOT NULL,
    location        text,
    -- Text, not jsonb: the response is replayed byte for byte.
    body            text     NOT NULL,
    created_at      bigint   NOT NULL,
    PRIMARY KEY (organization_id, key)
);
CREATE INDEX idempotency_keys_created_at ON idempotency_keys (created_at);
