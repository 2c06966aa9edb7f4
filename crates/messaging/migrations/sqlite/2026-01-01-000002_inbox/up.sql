-- Handled events of each consumer, recorded in the transaction of its work: a redelivery changes nothing.
CREATE TABLE inbox (
    consumer TEXT NOT NULL,
    event_id TEXT NOT NULL,
    -- Unix epoch milliseconds.
    handled_at BIGINT NOT NULL,
    PRIMARY KEY (consumer, event_id)
) WITHOUT ROWID;

CREATE INDEX inbox_age ON inbox (handled_at);
