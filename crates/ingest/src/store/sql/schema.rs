//! Tables of the schema `ingest`, the same columns on both databases.

use super::super::Id;

diesel::table! {
    use diesel::sql_types::{BigInt, Binary, Nullable, Text};
    use super::Id;

    identities (organization_id, identity_sha256) {
        organization_id -> Id,
        identity_sha256 -> Binary,
        ticket_id -> Id,
    }
}

diesel::table! {
    use diesel::sql_types::{BigInt, Binary, Nullable, Text};
    use super::Id;

    conversations (id) {
        id -> Id,
        organization_id -> Id,
        external_id -> Text,
        source -> Text,
        source_account_id -> Nullable<Text>,
        subject -> Nullable<Text>,
        started_at -> BigInt,
        ended_at -> BigInt,
        created_at -> BigInt,
        agents -> Text,
        packed -> Binary,
    }
}

diesel::table! {
    use diesel::sql_types::{BigInt, Binary, Nullable, Text};
    use super::Id;

    participants (organization_id, identity_sha256) {
        organization_id -> Id,
        identity_sha256 -> Binary,
        source -> Text,
        source_account_id -> Nullable<Text>,
        author_type -> Text,
        external_id -> Text,
        name -> Text,
        named_at -> BigInt,
    }
}

diesel::table! {
    use diesel::sql_types::BigInt;
    use super::Id;

    deletions (ticket_id) {
        ticket_id -> Id,
        organization_id -> Id,
        deleted_at -> BigInt,
    }
}

diesel::table! {
    use super::Id;

    expired_tickets (ticket_id) {
        ticket_id -> Id,
        organization_id -> Id,
    }
}

diesel::table! {
    use diesel::sql_types::{BigInt, Text};
    use super::Id;

    refusals (id) {
        id -> Id,
        organization_id -> Id,
        refused_at -> BigInt,
        refusal -> Text,
    }
}
