//! The migrations of all services, on both kinds of database: up and down one by one, killed in the middle, run by two
//! at once; and the rule that lets the release before work on the new schema (`proto-docs/migrations.md`).

mod files;
mod installation;
mod interrupted;
mod release_before;
mod statements;
mod steps;
mod together;
