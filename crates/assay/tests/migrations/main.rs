//! Migrations of all services on both databases: applied and reverted one by one, interrupted, run concurrently; and the
//! rule that the previous release works on the new schema (`proto-docs/migrations.md`).

mod concurrent;
mod files;
mod installation;
mod interrupted;
mod previous_release;
mod statements;
mod steps;
