-- The latest refused imports of each organization: a hundred at most, for thirty days.
CREATE TABLE refusals (
    -- Made by the gateway: version 7, by time.
    id              TEXT    NOT NULL PRIMARY KEY,
    organization_id TEXT    NOT NULL,
    refused_at      INTEGER NOT NULL,
    -- JSON: the kind of problem, and the fields with what is wrong. No content of the body.
    refusal         TEXT    NOT NULL
);
CREATE INDEX refusals_latest ON refusals (organization_id, id);
CREATE INDEX refusals_age ON refusals (refused_at);
