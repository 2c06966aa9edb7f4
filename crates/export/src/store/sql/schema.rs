//! The tables, as the migrations create them.

diesel::table! {
    exports (id) {
        id -> Text,
        organization_id -> Text,
        kind -> Text,
        filter_from -> Nullable<BigInt>,
        filter_to -> Nullable<BigInt>,
        status -> Text,
        created_at -> BigInt,
        updated_at -> BigInt,
        lease_owner -> Nullable<Text>,
        lease_until -> Nullable<BigInt>,
        attempts -> Integer,
        hand_backs -> Integer,
        object_key -> Nullable<Text>,
        file_bytes -> Nullable<BigInt>,
        file_rows -> Nullable<BigInt>,
        file_sha256 -> Nullable<Text>,
        file_expires_at -> Nullable<BigInt>,
        file_removed_at -> Nullable<BigInt>,
        error_message -> Nullable<Text>,
        awaited_evaluations -> Nullable<BigInt>,
    }
}

diesel::table! {
    evaluation_rows (ticket_id) {
        ticket_id -> Text,
        organization_id -> Text,
        conversation_started_at -> BigInt,
        evaluated_at -> BigInt,
        evaluation_id -> Text,
        columns_version -> SmallInt,
        axis_line -> Text,
        audit_line -> Text,
    }
}

diesel::table! {
    progress (organization_id) {
        organization_id -> Text,
        taken_in -> BigInt,
    }
}

diesel::table! {
    early_arrivals (organization_id, first) {
        organization_id -> Text,
        first -> BigInt,
        last -> BigInt,
        since -> BigInt,
    }
}

diesel::allow_tables_to_appear_in_same_query!(exports, progress);
