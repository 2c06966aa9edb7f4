-- Times are Unix epoch milliseconds.

-- The identity of every import, for ever, as a hash: a second import of a conversation is a duplicate, also after its
-- deletion. Apart from the conversations, because a unique index of a partitioned table needs the partition key; in eight
-- partitions, because entries come in random order and smaller indexes stay in memory.
CREATE TABLE identities (
    organization_id uuid  NOT NULL,
    -- Of namespace and external id together.
    identity_sha256 bytea NOT NULL,
    ticket_id       uuid  NOT NULL,
    PRIMARY KEY (organization_id, identity_sha256)
) PARTITION BY HASH (identity_sha256);
CREATE TABLE identities_0 PARTITION OF identities FOR VALUES WITH (MODULUS 8, REMAINDER 0);
CREATE TABLE identities_1 PARTITION OF identities FOR VALUES WITH (MODULUS 8, REMAINDER 1);
CREATE TABLE identities_2 PARTITION OF identities FOR VALUES WITH (MODULUS 8, REMAINDER 2);
CREATE TABLE identities_3 PARTITION OF identities FOR VALUES WITH (MODULUS 8, REMAINDER 3);
CREATE TABLE identities_4 PARTITION OF identities FOR VALUES WITH (MODULUS 8, REMAINDER 4);
CREATE TABLE identities_5 PARTITION OF identities FOR VALUES WITH (MODULUS 8, REMAINDER 5);
CREATE TABLE identities_6 PARTITION OF identities FOR VALUES WITH (MODULUS 8, REMAINDER 6);
CREATE TABLE identities_7 PARTITION OF identities FOR VALUES WITH (MODULUS 8, REMAINDER 7);

-- One row for each conversation. Ids are UUIDs of version 7, so a range of ids is a range of time: one partition for each
-- month, which the service creates ahead. The default partition takes ids outside of them, so that a wrong clock refuses
-- nothing.
CREATE TABLE conversations (
    id                uuid   PRIMARY KEY,
    organization_id   uuid   NOT NULL,
    external_id       text   NOT NULL,
    source            text   NOT NULL,
    source_account_id text,
    subject           text,
    started_at        bigint NOT NULL,
    ended_at          bigint NOT NULL,
    created_at        bigint NOT NULL,
    -- JSON: the registered agents that took part, as they were known then.
    agents            text   NOT NULL,
    -- JSON of the messages, compressed by the service; authors that are agents carry both ids.
    packed            bytea  NOT NULL
) PARTITION BY RANGE (id);
-- PostgreSQL would only try in vain to compress it further.
ALTER TABLE conversations ALTER COLUMN packed SET STORAGE EXTERNAL;
CREATE TABLE conversations_default PARTITION OF conversations DEFAULT;

-- Expiry: the oldest conversations of an organization, whose age is in their ids.
CREATE INDEX conversations_age ON conversations (organization_id, id);

-- The canonical display name of each provider identity.
CREATE TABLE participants (
    organization_id   uuid   NOT NULL,
    -- Of source, account, author type and external id: together they are longer than an index entry may be.
    identity_sha256   bytea  NOT NULL,
    source            text   NOT NULL,
    source_account_id text,
    author_type       text   NOT NULL,
    external_id       text   NOT NULL,
    name              text   NOT NULL,
    -- Timestamp of the message that the name came with.
    named_at          bigint NOT NULL,
    PRIMARY KEY (organization_id, identity_sha256)
) WITH (fillfactor = 90);

-- Tombstones of deleted tickets, kept for as long as events about them may still be under way.
CREATE TABLE deletions (
    ticket_id       uuid   PRIMARY KEY,
    organization_id uuid   NOT NULL,
    deleted_at      bigint NOT NULL
);
CREATE INDEX deletions_age ON deletions (deleted_at);

-- Tickets whose transcripts have expired while their evaluations are kept: they can still be deleted.
CREATE TABLE expired_tickets (
    ticket_id       uuid PRIMARY KEY,
    organization_id uuid NOT NULL
);
CREATE INDEX expired_tickets_age ON expired_tickets (organization_id, ticket_id);
