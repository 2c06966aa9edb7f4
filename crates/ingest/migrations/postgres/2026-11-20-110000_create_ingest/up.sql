-- Which imports exist. Apart from the conversations, because a unique index over partitions needs the partition key;
-- in eight parts, because its entries come in random order and smaller indexes stay in memory.
CREATE TABLE identities (
    organization_id uuid  NOT NULL,
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

-- One row a transcript. Ids are UUIDs of version 7, so a range of ids is a range of time: one partition a month, made
-- ahead by the service. The default partition takes what falls outside, so that a wrong clock refuses nothing.
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
    -- The registered agents that took part, as they were known then.
    agents            jsonb  NOT NULL,
    -- Authors that are agents carry both ids.
    messages          jsonb  NOT NULL
) PARTITION BY RANGE (id);
CREATE TABLE conversations_default PARTITION OF conversations DEFAULT;

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
