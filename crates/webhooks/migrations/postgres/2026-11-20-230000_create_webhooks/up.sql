-- Who wants to be told, and what they were told. Times are Unix epoch milliseconds.
CREATE TABLE endpoints (
    id                    uuid     PRIMARY KEY,
    organization_id       uuid     NOT NULL,
    url                   text     NOT NULL,
    description           text,
    -- Names, separated by spaces.
    events                text     NOT NULL,
    -- Whether one of them tells of evaluations: what scoring-worker asks for.
    wants_evaluations     boolean  NOT NULL,
    low_score_tenths      smallint NOT NULL CHECK (low_score_tenths BETWEEN 10 AND 50),
    enabled               boolean  NOT NULL,
    disabled_reason       text,
    -- Encrypted.
    secret                text     NOT NULL,
    previous_secret       text     CHECK ((previous_secret IS NULL) = (previous_secret_until IS NULL)),
    previous_secret_until bigint,
    -- Since when its attempts fail, and how many messages were given up since.
    failing_since         bigint,
    given_up              integer  NOT NULL DEFAULT 0,
    created_at            bigint   NOT NULL,
    updated_at            bigint   NOT NULL,
    -- Nobody sees it any more; what belongs to it is removed bit by bit.
    deleted_at            bigint
);

-- The list, newest first.
CREATE INDEX endpoints_list ON endpoints (organization_id, created_at DESC, id DESC) WHERE deleted_at IS NULL;
-- Who wants to be told of evaluations.
CREATE INDEX endpoints_interest ON endpoints (organization_id) WHERE enabled AND wants_evaluations AND deleted_at IS NULL;

-- One message to one endpoint.
CREATE TABLE deliveries (
    id              uuid    PRIMARY KEY,
    endpoint_id     uuid    NOT NULL,
    organization_id uuid    NOT NULL,
    event           text    NOT NULL,
    -- The ticket that it tells of: when that is deleted, the payload goes.
    ticket_id       uuid,
    payload         text,
    status          text    NOT NULL CHECK (status IN ('pending', 'delivered', 'failed')),
    attempts        integer NOT NULL DEFAULT 0,
    -- How many of the attempts were made before the last replay: the schedule begins anew there.
    earlier_attempts integer NOT NULL DEFAULT 0,
    -- When the next attempt is due. Whoever makes one moves it on, so that nobody else does meanwhile.
    due_at          bigint  NOT NULL,
    lease           uuid,
    created_at      bigint  NOT NULL
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
    delivery_id  uuid     NOT NULL REFERENCES deliveries (id) ON DELETE CASCADE,
    number       integer  NOT NULL,
    attempted_at bigint   NOT NULL,
    duration_ms  bigint   NOT NULL,
    status_code  smallint,
    error        text,
    PRIMARY KEY (delivery_id, number)
);

-- Tickets that were deleted: what is announced of them later is not told to anybody.
CREATE TABLE retractions (
    ticket_id  uuid   PRIMARY KEY,
    deleted_at bigint NOT NULL
);

CREATE INDEX retractions_age ON retractions (deleted_at);
