//! The tables, as the migrations make them.

diesel::table! {
    endpoints (id) {
        id -> Text,
        organization_id -> Text,
        url -> Text,
        description -> Nullable<Text>,
        events -> Text,
        wants_evaluations -> Bool,
        low_score_tenths -> SmallInt,
        enabled -> Bool,
        disabled_reason -> Nullable<Text>,
        secret -> Text,
        previous_secret -> Nullable<Text>,
        previous_secret_until -> Nullable<BigInt>,
        failing_since -> Nullable<BigInt>,
        given_up -> Integer,
        created_at -> BigInt,
        updated_at -> BigInt,
        deleted_at -> Nullable<BigInt>,
    }
}

diesel::table! {
    deliveries (id) {
        id -> Text,
        endpoint_id -> Text,
        organization_id -> Text,
        event -> Text,
        ticket_id -> Nullable<Text>,
        payload -> Nullable<Text>,
        status -> Text,
        attempts -> Integer,
        earlier_attempts -> Integer,
        due_at -> BigInt,
        lease -> Nullable<Text>,
        created_at -> BigInt,
    }
}

diesel::table! {
    attempts (delivery_id, number) {
        delivery_id -> Text,
        number -> Integer,
        attempted_at -> BigInt,
        duration_ms -> BigInt,
        status_code -> Nullable<SmallInt>,
        error -> Nullable<Text>,
    }
}

diesel::table! {
    retractions (ticket_id) {
        ticket_id -> Text,
        deleted_at -> BigInt,
    }
}

diesel::allow_tables_to_appear_in_same_query!(endpoints, deliveries);
diesel::allow_tables_to_appear_in_same_query!(deliveries, retractions);
