-- One row a transcript.
CREATE TABLE conversations (
    id                TEXT    NOT NULL PRIMARY KEY,
    organization_id   TEXT    NOT NULL,
    -- What an import is identified by: namespace and external id together.
    identity_sha256   BLOB    NOT NULL,
    external_id       TEXT    NOT NULL,
    source            TEXT    NOT NULL,
    source_account_id TEXT,
    subject           TEXT,
    started_at        INTEGER NOT NULL,
    ended_at          INTEGER NOT NULL,
    created_at        INTEGER NOT NULL,
    -- JSON: the registered agents that took part, as they were known then.
    agents            TEXT    NOT NULL,
    -- JSON: authors that are agents carry both ids.
    messages          TEXT    NOT NULL,
    UNIQUE (organization_id, identity_sha256)
);

-- The canonical display name of each provider identity.
CREATE TABLE participants (
    organization_id   TEXT    NOT NULL,
    identity_sha256   BLOB    NOT NULL,
    source            TEXT    NOT NULL,
    source_account_id TEXT,
    author_type       TEXT    NOT NULL,
    external_id       TEXT    NOT NULL,
    name              TEXT    NOT NULL,
    -- Timestamp of the message that the name came with.
    named_at          INTEGER NOT NULL,
    PRIMARY KEY (organization_id, identity_sha256)
) WITHOUT ROWID;
