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
