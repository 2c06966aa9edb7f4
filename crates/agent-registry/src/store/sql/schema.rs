//! The tables, as the migrations create them.

use super::IdType;

diesel::table! {
    use diesel::sql_types::{BigInt, Text};
    use super::IdType;

    organizations (id) {
        id -> IdType,
        name -> Text,
        created_at -> BigInt,
    }
}

diesel::table! {
    use diesel::sql_types::{BigInt, Binary, Nullable, Text};
    use super::IdType;

    api_keys (id) {
        id -> IdType,
        organization_id -> IdType,
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
    use super::IdType;

    agents (id) {
        id -> IdType,
        organization_id -> IdType,
        external_id -> Text,
        external_id_sha256 -> Binary,
        name -> Text,
        created_at -> BigInt,
    }
}

diesel::table! {
    use diesel::sql_types::{Integer, Nullable};
    use super::IdType;

    retention (organization_id) {
        organization_id -> IdType,
        transcripts_days -> Nullable<Integer>,
        evaluations_days -> Nullable<Integer>,
        files_days -> Nullable<Integer>,
    }
}

diesel::table! {
    use diesel::sql_types::{BigInt, Binary};
    use super::IdType;

    console_links (token_sha256) {
        token_sha256 -> Binary,
        organization_id -> IdType,
        expires_at -> BigInt,
    }
}

diesel::table! {
    use diesel::sql_types::{BigInt, Binary, Nullable, Text};
    use super::IdType;

    console_sessions (id) {
        id -> IdType,
        organization_id -> IdType,
        api_key_id -> Nullable<IdType>,
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
