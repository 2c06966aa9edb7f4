CREATE TABLE organizations (
    id         uuid   PRIMARY KEY,
    name       text   NOT NULL UNIQUE,
    created_at bigint NOT NULL
);

CREATE TABLE api_keys (
    id              uuid   PRIMARY KEY,
    organization_id uuid   NOT NULL REFERENCES organizations (id),
    -- The key itself is known to its owner only.
    key_sha256      bytea  NOT NULL UNIQUE,
    name            text   NOT NULL,
    -- Names separated by spaces.
    scopes          text   NOT NULL,
    created_at      bigint NOT NULL,
    last_used_at    bigint,
    expires_at      bigint,
    revoked_at      bigint
);
CREATE INDEX api_keys_organization ON api_keys (organization_id, id);

CREATE TABLE agents (
    id                 uuid   PRIMARY KEY,
    organization_id    uuid   NOT NULL REFERENCES organizations (id),
    external_id        text   NOT NULL,
    -- An index entry is shorter than the longest external id.
    external_id_sha256 bytea  NOT NULL,
    name               text   NOT NULL,
    created_at         bigint NOT NULL,
    UNIQUE (organization_id, external_id_sha256)
);
