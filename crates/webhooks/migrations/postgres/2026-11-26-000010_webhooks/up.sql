-- Times are Unix epoch milliseconds.

-- Webhooks: the endpoints of organizations.
CREATE TABLE endpoints (
    id                    uuid     PRIMARY KEY,
    organization_id       uuid     NOT NULL,
    url                   text     NOT NULL,
    description           text,
    -- Names of the subscribed events, separated by spaces.
    events                text     NOT NULL,
    -- Whether one of them is about evaluations; scoring-worker polls for the organizations that have such a webhook.
    wants_evaluations     boolean  NOT NULL,
    low_score_tenths      smallint NOT NULL CHECK (low_score_tenths BETWEEN 10 AND 50),
    enabled               boolean  NOT NULL,
    disabled_reason       text,
    -- Encrypted.
    secret                text     NOT NULL,
    previous_secret       text     CHECK ((previous_secret IS NULL) = (previous_secret_until IS NULL)),
    previous_secret_until bigint,
    -- Since when all attempts fail, and how many messages were given up since then.
    failing_since         bigint,
    given_up              integer  NOT NULL DEFAULT 0,
    created_at            bigint   NOT NULL,
    updated_at            bigint   NOT NULL,
    -- Deleted webhooks are hidden; maintenance removes their messages in batches, then the row.
    deleted_at            bigint
);

-- The list, newest first.
CREATE INDEX endpoints_list ON endpoints (organization_id, created_at DESC, id DESC) WHERE deleted_at IS NULL;
-- Organizations with webhooks for evaluations.
CREATE INDEX endpoints_subscribers ON endpoints (organization_id) WHERE enabled AND wants_evaluations AND deleted_at IS NULL;

-- Messages, one row for each event and endpoint.
CREATE TABLE deliveries (
    id              uuid    PRIMARY KEY,
    endpoint_id     uuid    NOT NULL,
    organization_id uuid    NOT NULL,
    event           text    NOT NULL,
    -- The ticket of the event. When it is deleted, the payload is removed.
    ticket_id       uuid,
    payload         text,
    status          text    NOT NULL CHECK (status IN ('pending', 'delivered', 'failed')),
    attempts        integer NOT NULL DEFAULT 0,
    -- Attempts before the last replay, which restarts the retry schedule.
    earlier_attempts integer NOT NULL DEFAULT 0,
    -- Time of the next attempt. A claim moves it forward, so that no other worker makes the same attempt.
    due_at          bigint  NOT NULL,
    lease           uuid,
    created_at      bigint  NOT NULL
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
    delivery_id  uuid     NOT NULL REFERENCES deliveries (id) ON DELETE CASCADE,
    number       integer  NOT NULL,
    attempted_at bigint   NOT NULL,
    duration_ms  bigint   NOT NULL,
    status_code  smallint,
    error        text,
    PRIMARY KEY (delivery_id, number)
);

-- Deleted tickets: events that arrive for them later make no messages.
CREATE TABLE retractions (
    ticket_id  uuid   PRIMARY KEY,
    deleted_at bigint NOT NULL
);

CREATE INDEX retractions_age ON retractions (deleted_at);
