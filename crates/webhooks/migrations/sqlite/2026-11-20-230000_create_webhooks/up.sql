-- Who wants to be told, and what they were told. Times are Unix epoch milliseconds, ids are lower-case texts.
CREATE TABLE endpoints (
    id                    TEXT     NOT NULL PRIMARY KEY,
    organization_id       TEXT     NOT NULL,
    url                   TEXT     NOT NULL,
    description           TEXT,
    -- Names, separated by spaces.
    events                TEXT     NOT NULL,
    -- Whether one of them tells of evaluations: what scoring-worker asks for.
    wants_evaluations     BOOLEAN  NOT NULL,
    low_score_tenths      SMALLINT NOT NULL CHECK (low_score_tenths BETWEEN 10 AND 50),
    enabled               BOOLEAN  NOT NULL,
    disabled_reason       TEXT,
    -- Encrypted.
    secret                TEXT     NOT NULL,
    previous_secret       TEXT     CHECK ((previous_secret IS NULL) = (previous_secret_until IS NULL)),
    previous_secret_until BIGINT,
    -- Since when its attempts fail, and how many messages were given up since.
    failing_since         BIGINT,
    given_up              INTEGER  NOT NULL DEFAULT 0,
    created_at            BIGINT   NOT NULL,
    updated_at            BIGINT   NOT NULL,
    -- Nobody sees it any more; what belongs to it is removed bit by bit.
    deleted_at            BIGINT
);

-- The list, newest first.
CREATE INDEX endpoints_list ON endpoints (organization_id, created_at DESC, id DESC) WHERE deleted_at IS NULL;
-- Who wants to be told of evaluations.
CREATE INDEX endpoints_interest ON endpoints (organization_id) WHERE enabled AND wants_evaluations AND deleted_at IS NULL;

-- One message to one endpoint.
CREATE TABLE deliveries (
    id              TEXT    NOT NULL PRIMARY KEY,
    endpoint_id     TEXT    NOT NULL,
    organization_id TEXT    NOT NULL,
    event           TEXT    NOT NULL,
    -- The ticket that it tells of: when that is deleted, the payload goes.
    ticket_id       TEXT,
    payload         TEXT,
    status          TEXT    NOT NULL CHECK (status IN ('pending', 'delivered', 'failed')),
    attempts        INTEGER NOT NULL DEFAULT 0,
    -- How many of the attempts were made before the last replay: the schedule begins anew there.
    earlier_attempts INTEGER NOT NULL DEFAULT 0,
    -- When the next attempt is due. Whoever makes one moves it on, so that nobody else does meanwhile.
    due_at          BIGINT  NOT NULL,
    lease           TEXT,
    created_at      BIGINT  NOT NULL
);

-- What is to be sent.
CREATE INDEX deliveries_due ON deliveries (endpoint_id, due_at) WHERE status = 'pending';
-- The log, newest first.
CREATE INDEX deliveries_log ON deliveries (endpoint_id, created_at DESC, id DESC);
-- What is too old.
CREATE INDEX deliveries_age ON deliveries (created_at);
-- What a deletion erases.
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

-- Tickets that were deleted: what is announced of them later is not told to anybody.
CREATE TABLE retractions (
    ticket_id  TEXT   NOT NULL PRIMARY KEY,
    deleted_at BIGINT NOT NULL
);

CREATE INDEX retractions_age ON retractions (deleted_at);
