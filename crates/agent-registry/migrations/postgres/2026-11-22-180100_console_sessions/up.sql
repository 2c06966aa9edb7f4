-- Sign-in links that sign in to the console. Only the hash of a token is stored. Times are Unix epoch milliseconds.
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
