//! The tables, as diesel sees them in either database.

pub(super) mod postgres {
    diesel::table! {
        evaluations (ticket_id) {
            ticket_id -> Uuid,
            id -> Uuid,
            organization_id -> Uuid,
            status -> Text,
            document -> Nullable<Text>,
            error_message -> Nullable<Text>,
            scorer_version -> Text,
            created_at -> BigInt,
        }
    }

    diesel::table! {
        progress (organization_id) {
            organization_id -> Uuid,
            evaluated -> BigInt,
        }
    }
}

pub(super) mod sqlite {
    diesel::table! {
        evaluations (ticket_id) {
            ticket_id -> Binary,
            id -> Binary,
            organization_id -> Binary,
            status -> Text,
            document -> Nullable<Text>,
            error_message -> Nullable<Text>,
            scorer_version -> Text,
            created_at -> BigInt,
        }
    }

    diesel::table! {
        progress (organization_id) {
            organization_id -> Binary,
            evaluated -> BigInt,
        }
    }
}
