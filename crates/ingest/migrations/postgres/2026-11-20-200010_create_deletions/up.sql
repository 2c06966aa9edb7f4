-- Tickets that were deleted, for as long as events about them may still be under way. Their identities stay, as hashes, for
-- ever: a second import is a duplicate.
CREATE TABLE deletions (
    ticket_id       uuid   PRIMARY KEY,
    organization_id uuid   NOT NULL,
    deleted_at      bigint NOT NULL
);
CREATE INDEX deletions_age ON deletions (deleted_at);

-- What an organization no longer keeps: its oldest conversations, whose age is in their ids.
CREATE INDEX conversations_age ON conversations (organization_id, id);

-- Tickets whose transcripts have expired while their evaluations are kept: they can still be deleted.
CREATE TABLE expired_tickets (
    ticket_id       uuid PRIMARY KEY,
    organization_id uuid NOT NULL
);
CREATE INDEX expired_tickets_age ON expired_tickets (organization_id, ticket_id);
