-- Times are Unix epoch milliseconds, ids lower-case UUIDs.

-- Webhooks: the endpoints of organizations.
CREATE TABLE endpoints (
    id                    TEXT     NOT NULL PRIMARY KEY,
    organization_id       TEXT     NOT NULL,
    url                   TEXT     NOT NULL,
    description           TEXT,
    -- Names of the subscribed events, separated by spaces.
    events                TEXT     NOT NULL,
    -- Whether one of them is about evaluations; scoring-worker polls for the organizations that have such a webhook.
    wants_evaluations     BOOLEAN  NOT NULL,
    low_score_tenths      SMALLINT NOT NULL CHECK (low_score_tenths BETWEEN 10 AND 50),
    enabled               BOOLEAN  NOT NULL,
    disabled_reason       TEXT,
    -- Encrypted.
    secret                TEXT     NOT NULL,
    previous_secret       TEXT     CHECK ((previous_secret IS NULL) = (previous_secret_until IS NULL)),
    previous_secret_until BIGINT,
    -- Since when all attempts fail, and how many messages were given up since then.
    failing_since         BIGINT,
    given_up              INTEGER  NOT NULL DEFAULT 0,
    created_at            BIGINT   NOT NULL,
    updated_at            BIGINT   NOT NULL,
    -- Deleted webhooks are hidden; maintenance removes their messages in batches, then the row.
    deleted_at            BIGINT
);

-- The list, newest first.
CREATE INDEX endpoints_list ON endpoints (organization_id, created_at DESC, id DESC) WHERE deleted_at IS NULL;
-- Organizations with webhooks for evaluations.
CREATE INDEX endpoints_subscribers ON endpoints (organization_id) WHERE enabled AND wants_evaluations AND deleted_at IS NULL;

-- Messages, one row for each event and endpoint.
CREATE TABLE deliveries (
    id              TEXT    NOT NULL PRIMARY KEY,
    endpoint_id     TEXT    NOT NULL,
    organization_id TEXT    NOT NULL,
    event           TEXT    NOT NULL,
    -- The ticket of the event. When it is deleted, the payload is removed.
    ticket_id       TEXT,
    payload         TEXT,
    status          TEXT    NOT NULL CHECK (status IN ('pending', 'delivered', 'failed')),
    attempts        INTEGER NOT NULL DEFAULT 0,
    -- Attempts before the last replay, which restarts the retry schedule.
    earlier_attempts INTEGER NOT NULL DEFAULT 0,
    -- Time of the next attempt. A claim moves it forward, so that no other worker makes the same attempt.
    due_at          BIGINT  NOT NULL,
    lease           TEXT,
    created_at      BIGINT  NOT NULL
);

-- Messages to send.
CREATE INDEX deliveries_due ON deliveries (endpoint_id, due_at) WHERE status = 'pending';
-- The log, newest first.
CREATE INDEX deliveries_log ON deliveries (endpoint_id, created_at DESC, id DESC);
-- Test messages of an endpoint, newest first: their number is bounded.
CREATE INDEX deliveries_tests ON deliveries (endpoint_id, created_at DESC, id DESC) WHERE event = 'webhook.test';
-- Messages whose retention period is over.
CREATE INDEX deliveries_age ON deliveries (created_at);
-- Messages of a deleted ticket.
CREATE INDEX deliveries_ticket ON deliveries (ticket_id) WHERE ticket_id IS NOT NULL;

CREATE TABLE attempts (
    delivery_id  TEXT     NOT NULL REFERENCES deliveries (id) ON DELETE CASCADE,
    number       INTEGER  NOT NULL,
    attempted_at BIGINT   NOT NULL,
    duration_ms  BIGINT   NOT NULL,
    status_code  SMALLINT,
    error        TEXT,
    PRIMARY KEY (delivery_id, number)
);

-- Deleted tickets: events that arrive for them later make no messages.
CREATE TABLE retractions (
    ticket_id  TEXT   NOT NULL PRIMARY KEY,
    deleted_at BIGINT NOT NULL
);

CREATE INDEX retractions_age ON retractions (deleted_at);
