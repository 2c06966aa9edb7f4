//! The tables that diesel's query builder uses, as the migrations create them. `evaluation_rows`, `evaluation_facts`,
//! `evaluation_days` and `stale_days` are used by SQL alone.

diesel::table! {
    use diesel::sql_types::*;
    use super::super::Id;

    exports (id) {
        id -> Id,
        organization_id -> Id,
        kind -> Text,
        filter_from -> Nullable<BigInt>,
        filter_to -> Nullable<BigInt>,
        status -> Text,
        created_at -> BigInt,
        updated_at -> BigInt,
        lease_owner -> Nullable<Id>,
        lease_until -> Nullable<BigInt>,
        attempts -> Integer,
        // Released claims, which are not counted as attempts.
        released_claims -> Integer,
        object_key -> Nullable<Text>,
        file_bytes -> Nullable<BigInt>,
        file_rows -> Nullable<BigInt>,
        file_sha256 -> Nullable<Text>,
        file_expires_at -> Nullable<BigInt>,
        file_removed_at -> Nullable<BigInt>,
        error_message -> Nullable<Text>,
        target_sequence -> Nullable<BigInt>,
        missing_evaluations -> Nullable<BigInt>,
        filters -> Nullable<Text>,
    }
}

diesel::table! {
    use diesel::sql_types::*;
    use super::super::Id;

    progress (organization_id) {
        organization_id -> Id,
        watermark -> BigInt,
    }
}

diesel::table! {
    use diesel::sql_types::*;
    use super::super::Id;

    // The out-of-order ranges of `SequenceTracker`.
    early_sequences (organization_id, first) {
        organization_id -> Id,
        first -> BigInt,
        last -> BigInt,
        since -> BigInt,
    }
}

diesel::table! {
    use diesel::sql_types::*;
    use super::super::Id;

    skipped_sequences (organization_id, first) {
        organization_id -> Id,
        first -> BigInt,
        last -> BigInt,
        // The evaluations of these sequences are older than this time.
        older_than -> BigInt,
    }
}

diesel::allow_tables_to_appear_in_same_query!(exports, progress);
