-- Responses to requests with an Idempotency-Key. Only successes; replayed for 24 hours.
CREATE TABLE idempotency_keys (
    organization_id TEXT    NOT NULL,
    key             TEXT    NOT NULL,
    fingerprint     BLOB    NOT NULL,
    status          INTEGER NOT NULL,
    location        TEXT,
    body            TEXT    NOT NULL,
    created_at      INTEGER NOT NULL,
    PRIMARY KEY (organization_id, key)
) WITHOUT ROWID;
CREATE INDEX idempotency_keys_created_at ON idempotency_keys (created_at);
