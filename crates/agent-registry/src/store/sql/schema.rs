//! The tables, as the migrations create them.

use super::Id;

diesel::table! {
    use diesel::sql_types::{BigInt, Text};
    use super::Id;

    organizations (id) {
        id -> Id,
        name -> Text,
        created_at -> BigInt,
    }
}

diesel::table! {
    use diesel::sql_types::{BigInt, Binary, Nullable, Text};
    use super::Id;

    api_keys (id) {
        id -> Id,
        organization_id -> Id,
        key_sha256 -> Binary,
        name -> Text,
        scopes -> Text,
        created_at -> BigInt,
        last_used_at -> Nullable<BigInt>,
        expires_at -> Nullable<BigInt>,
        revoked_at -> Nullable<BigInt>,
    }
}

diesel::table! {
    use diesel::sql_types::{BigInt, Binary, Text};
    use super::Id;

    agents (id) {
        id -> Id,
        organization_id -> Id,
        external_id -> Text,
        external_id_sha256 -> Binary,
        name -> Text,
        created_at -> BigInt,
    }
}

diesel::table! {
    use diesel::sql_types::{Integer, Nullable};
    use super::Id;

    retention (organization_id) {
        organization_id -> Id,
        transcripts_days -> Nullable<Integer>,
        evaluations_days -> Nullable<Integer>,
        files_days -> Nullable<Integer>,
    }
}

diesel::table! {
    use diesel::sql_types::{BigInt, Binary};
    use super::Id;

    console_links (token_sha256) {
        token_sha256 -> Binary,
        organization_id -> Id,
        expires_at -> BigInt,
    }
}

diesel::table! {
    use diesel::sql_types::{BigInt, Binary, Nullable, Text};
    use super::Id;

    console_sessions (id) {
        id -> Id,
        organization_id -> Id,
        api_key_id -> Nullable<Id>,
        token_sha256 -> Binary,
        browser -> Text,
        created_at -> BigInt,
        last_used_at -> BigInt,
        expires_at -> BigInt,
    }
}

diesel::joinable!(api_keys -> organizations (organization_id));
diesel::joinable!(retention -> organizations (organization_id));
diesel::joinable!(console_sessions -> organizations (organization_id));
diesel::joinable!(console_sessions -> api_keys (api_key_id));
diesel::allow_tables_to_appear_in_same_query!(organizations, api_keys, retention, console_sessions);
