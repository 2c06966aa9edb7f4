-- Tickets that were deleted, for as long as events about them may still be under way.
CREATE TABLE deletions (
    ticket_id       TEXT    NOT NULL PRIMARY KEY,
    organization_id TEXT    NOT NULL,
    deleted_at      INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX deletions_age ON deletions (deleted_at);

-- Identities of conversations that are gone: a second import is a duplicate.
CREATE TABLE used_identities (
    organization_id TEXT NOT NULL,
    identity_sha256 BLOB NOT NULL,
    ticket_id       TEXT NOT NULL,
    PRIMARY KEY (organization_id, identity_sha256)
) WITHOUT ROWID;

-- What an organization no longer keeps: its oldest conversations, whose age is in their ids.
CREATE INDEX conversations_age ON conversations (organization_id, id);

-- Tickets whose transcripts have expired while their evaluations are kept: they can still be deleted.
CREATE TABLE expired_tickets (
    ticket_id       TEXT NOT NULL PRIMARY KEY,
    organization_id TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX expired_tickets_age ON expired_tickets (organization_id, ticket_id);
