//! Display names, all of a batch in one statement.

use assay_platform::db::{DatabaseError, static_sql};
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{Array, BigInt, Binary, Nullable, Text, Uuid as SqlUuid};
use uuid::Uuid;

use crate::domain::{Import, Participant, latest_names};

/// A name is replaced by one with a later or equal timestamp. Rows that would not change are not written.
const UPSERT: &str = "
    INSERT INTO participants (organization_id, identity_sha256, source, source_account_id, author_type,
                              external_id, name, named_at)
    SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8)
    ON CONFLICT (organization_id, identity_sha256) DO UPDATE
       SET name = excluded.name, named_at = excluded.named_at
     WHERE participants.named_at < excluded.named_at
        OR (participants.named_at = excluded.named_at AND participants.name <> excluded.name)";

pub(super) fn upsert_names(connection: &mut PgConnection, imports: &[&Import]) -> Result<(), DatabaseError> {
    let names = latest_names(imports.iter().flat_map(|import| import.participants.iter().cloned()));
    if names.is_empty() {
        return Ok(());
    }
    let texts = |of: fn(&Participant) -> &str| names.iter().map(of).collect::<Vec<_>>();
    let organizations: Vec<Uuid> = names.iter().map(|named| named.organization_id.as_uuid()).collect();
    let identities: Vec<&[u8]> = names.iter().map(|named| named.identity.as_slice()).collect();
    let accounts: Vec<Option<&str>> = names.iter().map(|named| named.source_account_id.as_deref()).collect();
    let times: Vec<i64> = names.iter().map(|named| named.named_at.as_millis()).collect();
    static_sql(UPSERT)
        .bind::<Array<SqlUuid>, _>(organizations)
        .bind::<Array<Binary>, _>(identities)
        .bind::<Array<Text>, _>(texts(|named| &named.source))
        .bind::<Array<Nullable<Text>>, _>(accounts)
        .bind::<Array<Text>, _>(texts(|named| named.author_type.as_str()))
        .bind::<Array<Text>, _>(texts(|named| &named.external_id))
        .bind::<Array<Text>, _>(texts(|named| &named.name))
        .bind::<Array<BigInt>, _>(times)
        .execute(connection)?;
    Ok(())
}
