CREATE TABLE organizations (
    id         TEXT    NOT NULL PRIMARY KEY,
    name       TEXT    NOT NULL UNIQUE,
    created_at INTEGER NOT NULL
);

CREATE TABLE api_keys (
    id              TEXT    NOT NULL PRIMARY KEY,
    organization_id TEXT    NOT NULL REFERENCES organizations (id),
    -- The key itself is known to its owner only.
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
