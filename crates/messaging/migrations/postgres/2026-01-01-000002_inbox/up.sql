-- Handled events of each consumer, recorded in the transaction of its work: a redelivery changes nothing.
CREATE TABLE inbox (
    consumer text NOT NULL,
    event_id uuid NOT NULL,
    -- Unix epoch milliseconds.
    handled_at bigint NOT NULL,
    PRIMARY KEY (consumer, event_id)
);

CREATE INDEX inbox_age ON inbox (handled_at);
