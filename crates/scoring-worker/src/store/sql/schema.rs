//! The tables, as the migrations create them.

use super::IdType;

diesel::table! {
    use diesel::sql_types::{BigInt, Bool, Nullable, Text};
    use super::IdType;

    evaluations (ticket_id) {
        ticket_id -> IdType,
        id -> IdType,
        organization_id -> IdType,
        status -> Text,
        document -> Nullable<Text>,
        error_message -> Nullable<Text>,
        scorer_version -> Text,
        created_at -> BigInt,
        deleted_at -> Nullable<BigInt>,
        given_up -> Bool,
    }
}

diesel::table! {
    use diesel::sql_types::BigInt;
    use super::IdType;

    progress (organization_id) {
        organization_id -> IdType,
        evaluated -> BigInt,
    }
}
