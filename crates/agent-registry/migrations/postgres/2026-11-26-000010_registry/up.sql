-- Times are Unix epoch milliseconds.
CREATE TABLE organizations (
    id         uuid   PRIMARY KEY,
    name       text   NOT NULL UNIQUE,
    created_at bigint NOT NULL
);

CREATE TABLE api_keys (
    id              uuid   PRIMARY KEY,
    organization_id uuid   NOT NULL REFERENCES organizations (id),
    -- Only the hash of a key is stored.
    key_sha256      bytea  NOT NULL UNIQUE,
    name            text   NOT NULL,
    -- Names separated by spaces.
    scopes          text   NOT NULL,
    created_at      bigint NOT NULL,
    last_used_at    bigint,
    expires_at      bigint,
    revoked_at      bigint
);
CREATE INDEX api_keys_organization ON api_keys (organization_id, id);

CREATE TABLE agents (
    id                 uuid   PRIMARY KEY,
    organization_id    uuid   NOT NULL REFERENCES organizations (id),
    external_id        text   NOT NULL,
    -- An index entry is shorter than the longest external id.
    external_id_sha256 bytea  NOT NULL,
    name               text   NOT NULL,
    created_at         bigint NOT NULL,
    UNIQUE (organization_id, external_id_sha256)
);

-- Retention periods that an organization has set for itself, in days; 0: for ever, NULL: the default of the installation.
CREATE TABLE retention (
    organization_id  uuid PRIMARY KEY REFERENCES organizations (id),
    transcripts_days integer CHECK (transcripts_days BETWEEN 0 AND 36500),
    evaluations_days integer CHECK (evaluations_days BETWEEN 0 AND 36500),
    files_days       integer CHECK (files_days BETWEEN 0 AND 36500)
);

-- Sign-in links that sign in to the console. Only the hash of a token is stored.
CREATE TABLE console_links (
    token_sha256    bytea  PRIMARY KEY,
    organization_id uuid   NOT NULL REFERENCES organizations (id),
    expires_at      bigint NOT NULL
);

-- Sessions of the console; signing out deletes the row.
CREATE TABLE console_sessions (
    id              uuid   PRIMARY KEY,
    organization_id uuid   NOT NULL REFERENCES organizations (id),
    -- The API key it began with; the session ends with it. NULL: a sign-in link.
    api_key_id      uuid   REFERENCES api_keys (id),
    token_sha256    bytea  NOT NULL UNIQUE,
    browser         text   NOT NULL,
    created_at      bigint NOT NULL,
    last_used_at    bigint NOT NULL,
    expires_at      bigint NOT NULL
);
CREATE INDEX console_sessions_organization ON console_sessions (organization_id, id);
