-- Times are Unix epoch milliseconds, ids lower-case UUIDs.
CREATE TABLE organizations (
    id         TEXT    NOT NULL PRIMARY KEY,
    name       TEXT    NOT NULL UNIQUE,
    created_at INTEGER NOT NULL
);

CREATE TABLE api_keys (
    id              TEXT    NOT NULL PRIMARY KEY,
    organization_id TEXT    NOT NULL REFERENCES organizations (id),
    -- Only the hash of a key is stored.
    key_sha256      BLOB    NOT NULL UNIQUE,
    name            TEXT    NOT NULL,
    -- Names separated by spaces.
    scopes          TEXT    NOT NULL,
    created_at      INTEGER NOT NULL,
    last_used_at    INTEGER,
    expires_at      INTEGER,
    revoked_at      INTEGER
);
CREATE INDEX api_keys_organization ON api_keys (organization_id, id);

CREATE TABLE agents (
    id                 TEXT    NOT NULL PRIMARY KEY,
    organization_id    TEXT    NOT NULL REFERENCES organizations (id),
    external_id        TEXT    NOT NULL,
    external_id_sha256 BLOB    NOT NULL,
    name               TEXT    NOT NULL,
    created_at         INTEGER NOT NULL,
    UNIQUE (organization_id, external_id_sha256)
);

-- Retention periods that an organization has set for itself, in days; 0: for ever, NULL: the default of the installation.
CREATE TABLE retention (
    organization_id  TEXT    NOT NULL PRIMARY KEY REFERENCES organizations (id),
    transcripts_days INTEGER CHECK (transcripts_days BETWEEN 0 AND 36500),
    evaluations_days INTEGER CHECK (evaluations_days BETWEEN 0 AND 36500),
    files_days       INTEGER CHECK (files_days BETWEEN 0 AND 36500)
) WITHOUT ROWID;

-- Sign-in links that sign in to the console. Only the hash of a token is stored.
CREATE TABLE console_links (
    token_sha256    BLOB    NOT NULL PRIMARY KEY,
    organization_id TEXT    NOT NULL REFERENCES organizations (id),
    expires_at      INTEGER NOT NULL
);

-- Sessions of the console; signing out deletes the row.
CREATE TABLE console_sessions (
    id              TEXT    NOT NULL PRIMARY KEY,
    organization_id TEXT    NOT NULL REFERENCES organizations (id),
    -- The API key it began with; the session ends with it. NULL: a sign-in link.
    api_key_id      TEXT    REFERENCES api_keys (id),
    token_sha256    BLOB    NOT NULL UNIQUE,
    browser         TEXT    NOT NULL,
    created_at      INTEGER NOT NULL,
    last_used_at    INTEGER NOT NULL,
    expires_at      INTEGER NOT NULL
);
CREATE INDEX console_sessions_organization ON console_sessions (organization_id, id);
