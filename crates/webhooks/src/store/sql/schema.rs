//! The tables, as the migrations make them. `Id` is the column type of ids: `uuid` in PostgreSQL, text in SQLite.

diesel::table! {
    use diesel::sql_types::*;
    use super::super::Id;

    endpoints (id) {
        id -> Id,
        organization_id -> Id,
        url -> Text,
        description -> Nullable<Text>,
        // Names, separated by spaces.
        events -> Text,
        wants_evaluations -> Bool,
        low_score_tenths -> SmallInt,
        enabled -> Bool,
        disabled_reason -> Nullable<Text>,
        secret -> Text,
        previous_secret -> Nullable<Text>,
        previous_secret_until -> Nullable<BigInt>,
        failing_since -> Nullable<BigInt>,
        // Messages given up since `failing_since`.
        given_up -> Integer,
        created_at -> BigInt,
        updated_at -> BigInt,
        deleted_at -> Nullable<BigInt>,
    }
}

diesel::table! {
    use diesel::sql_types::*;
    use super::super::Id;

    // Messages; the API calls them deliveries.
    deliveries (id) {
        id -> Id,
        endpoint_id -> Id,
        organization_id -> Id,
        event -> Text,
        ticket_id -> Nullable<Id>,
        payload -> Nullable<Text>,
        status -> Text,
        attempts -> Integer,
        // Attempts before the last replay.
        earlier_attempts -> Integer,
        // While the message is leased: expiry of the lease.
        due_at -> BigInt,
        lease -> Nullable<Id>,
        created_at -> BigInt,
    }
}

diesel::table! {
    use diesel::sql_types::*;
    use super::super::Id;

    attempts (delivery_id, number) {
        delivery_id -> Id,
        number -> Integer,
        attempted_at -> BigInt,
        duration_ms -> BigInt,
        status_code -> Nullable<SmallInt>,
        error -> Nullable<Text>,
    }
}

diesel::table! {
    use diesel::sql_types::*;
    use super::super::Id;

    retractions (ticket_id) {
        ticket_id -> Id,
        deleted_at -> BigInt,
    }
}

diesel::allow_tables_to_appear_in_same_query!(endpoints, deliveries);
diesel::allow_tables_to_appear_in_same_query!(deliveries, retractions);
