-- Times are Unix epoch milliseconds, ids lower-case UUIDs.

-- The identity of every import, for ever, as a hash: a second import of a conversation is a duplicate, also after its
-- deletion.
CREATE TABLE identities (
    organization_id TEXT NOT NULL,
    -- Of namespace and external id together.
    identity_sha256 BLOB NOT NULL,
    ticket_id       TEXT NOT NULL,
    PRIMARY KEY (organization_id, identity_sha256)
) WITHOUT ROWID;

-- One row for each conversation.
CREATE TABLE conversations (
    id                TEXT    NOT NULL PRIMARY KEY,
    organization_id   TEXT    NOT NULL,
    external_id       TEXT    NOT NULL,
    source            TEXT    NOT NULL,
    source_account_id TEXT,
    subject           TEXT,
    started_at        INTEGER NOT NULL,
    ended_at          INTEGER NOT NULL,
    created_at        INTEGER NOT NULL,
    -- JSON: the registered agents that took part, as they were known then.
    agents            TEXT    NOT NULL,
    -- JSON of the messages, compressed by the service; authors that are agents carry both ids.
    packed            BLOB    NOT NULL
);

-- Expiry: the oldest conversations of an organization, whose age is in their ids.
CREATE INDEX conversations_age ON conversations (organization_id, id);

-- The canonical display name of each provider identity.
CREATE TABLE participants (
    organization_id   TEXT    NOT NULL,
    -- Of source, account, author type and external id.
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

-- Tombstones of deleted tickets, kept for as long as events about them may still be under way.
CREATE TABLE deletions (
    ticket_id       TEXT    NOT NULL PRIMARY KEY,
    organization_id TEXT    NOT NULL,
    deleted_at      INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX deletions_age ON deletions (deleted_at);

-- Tickets whose transcripts have expired while their evaluations are kept: they can still be deleted.
CREATE TABLE expired_tickets (
    ticket_id       TEXT NOT NULL PRIMARY KEY,
    organization_id TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX expired_tickets_age ON expired_tickets (organization_id, ticket_id);
