-- Sign-in links that sign in to the console. Only the hash of a token is stored. Times are Unix epoch milliseconds.
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
