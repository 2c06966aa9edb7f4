//! Finds statements of a migration that would break the previous release.

use std::collections::BTreeSet;

/// Prefix of the comment that permits a removal: no release from the named one on uses the removed object.
const CONTRACT: &str = "-- contract: unused since ";

/// Problems of a migration that is applied while the previous release still runs. A file marked as the contraction of an
/// earlier expansion has none.
pub fn problems_for_previous_release(sql: &str) -> Vec<String> {
    if is_contraction(sql) {
        return Vec::new();
    }
    let statements = statements(sql);
    let new_tables: BTreeSet<String> =
        statements.iter().filter_map(|statement| created_table(statement)).collect();
    let on_old_table =
        |statement: &&String| !altered_table(statement).is_some_and(|table| new_tables.contains(&table));
    statements.iter().filter(on_old_table).filter_map(|statement| problem(statement)).collect()
}

/// `-- contract: unused since 1.4.0 (why it is safe)`.
fn is_contraction(sql: &str) -> bool {
    sql.lines().take_while(|line| line.starts_with("--")).any(|line| {
        let version = line.strip_prefix(CONTRACT).and_then(|rest| rest.split(' ').next()).unwrap_or_default();
        let parts: Vec<&str> = version.split('.').collect();
        parts.len() == 3 && parts.iter().all(|part| part.parse::<u32>().is_ok())
    })
}

/// The statements in upper case, without comments and function bodies, with single spaces.
fn statements(sql: &str) -> Vec<String> {
    let without_comments: String =
        sql.lines().map(|line| line.split("--").next().unwrap_or_default()).collect::<Vec<_>>().join("\n");
    // Every other part between dollar quotes is a function body.
    let outside: String = without_comments.split("$$").step_by(2).collect::<Vec<_>>().join(" ");
    let spaced = outside.replace('(', " ( ").replace(')', " ) ").replace(',', " , ");
    spaced
        .split(';')
        .map(|statement| statement.split_whitespace().collect::<Vec<_>>().join(" ").to_uppercase())
        .filter(|statement| !statement.is_empty())
        .collect()
}

fn created_table(statement: &str) -> Option<String> {
    let rest = statement.strip_prefix("CREATE TABLE ")?;
    first_name(rest.strip_prefix("IF NOT EXISTS ").unwrap_or(rest))
}

/// The table that a statement changes or removes or that it puts an index on.
fn altered_table(statement: &str) -> Option<String> {
    let rest = if let Some(rest) = statement.strip_prefix("ALTER TABLE ") {
        rest.strip_prefix("IF EXISTS ").unwrap_or(rest).trim_start_matches("ONLY ")
    } else if let Some(rest) = statement.strip_prefix("DROP TABLE ") {
        rest
    } else {
        let is_index =
            statement.starts_with("CREATE INDEX ") || statement.starts_with("CREATE UNIQUE INDEX ");
        statement.split_once(" ON ").filter(|_| is_index)?.1.trim_start_matches("ONLY ")
    };
    first_name(rest)
}

fn first_name(text: &str) -> Option<String> {
    text.split(' ').next().map(str::to_owned)
}

fn problem(statement: &str) -> Option<String> {
    let has = |words: &str| format!(" {statement} ").contains(&format!(" {words} "));
    let is_alteration = statement.starts_with("ALTER TABLE ");
    let reason = if has("DROP") || statement.starts_with("TRUNCATE ") {
        "the previous release may still use what is removed"
    } else if has("RENAME") {
        "the previous release knows the old name only"
    } else if is_alteration && ((changes_column(statement) && has("TYPE")) || has("SET NOT NULL")) {
        "the previous release reads and writes the column as it was"
    } else if is_alteration && has("ADD") && added_columns(statement).any(is_required) {
        "the previous release inserts rows without the column: give it a default, or let it be null"
    } else if is_alteration
        && ["CHECK", "FOREIGN KEY", "REFERENCES"].into_iter().any(has)
        && !has("NOT VALID")
    {
        "rows of the previous release may not pass: add it NOT VALID, and validate it one release later"
    } else if statement.starts_with("CREATE UNIQUE INDEX ")
        || (is_alteration && (has("UNIQUE") || has("PRIMARY KEY") || has("EXCLUDE")))
    {
        "the previous release may write what is not unique"
    } else {
        return None;
    };
    Some(format!("{statement}: {reason}"))
}

/// `ALTER TABLE … ALTER [COLUMN] …`.
fn changes_column(statement: &str) -> bool {
    statement.matches("ALTER ").count() > 1
}

/// The parts of `ADD … , ADD …`.
fn added_columns(statement: &str) -> impl Iterator<Item = &str> {
    statement.split(" ADD ").skip(1)
}

fn is_required(column: &str) -> bool {
    column.contains("NOT NULL") && !column.contains("DEFAULT")
}

#[test]
fn additive_statements_are_allowed() {
    for sql in [
        "CREATE TABLE t (a bigint NOT NULL CHECK (a > 0), b text UNIQUE); CREATE UNIQUE INDEX i ON t (a);",
        "CREATE TABLE t (a bigint); ALTER TABLE t ALTER COLUMN a SET NOT NULL;",
        "CREATE TABLE t (a bigint CHECK (a = 0)); INSERT INTO t SELECT 1 FROM u; DROP TABLE t;",
        "ALTER TABLE t ADD COLUMN a bigint;",
        "ALTER TABLE t ADD COLUMN type text;",
        "ALTER TABLE t ADD COLUMN a bigint NOT NULL DEFAULT 0;",
        "ALTER TABLE t ADD CONSTRAINT c CHECK (a > 0) NOT VALID;",
        "ALTER TABLE t VALIDATE CONSTRAINT c;",
        "CREATE INDEX i ON t (a); -- DROP TABLE t;",
        "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN DROP TABLE t; END $$;",
        "-- contract: unused since 1.4.0 (the readers went with 1.3.0)\nALTER TABLE t DROP COLUMN a;",
    ] {
        assert_eq!(problems_for_previous_release(sql), Vec::<String>::new(), "{sql}");
    }
}

#[test]
fn breaking_statements_are_found() {
    for sql in [
        "DROP TABLE t;",
        "CREATE TABLE u (a bigint); DROP TABLE t;",
        "drop index i",
        "TRUNCATE t;",
        "ALTER TABLE t DROP COLUMN a;",
        "ALTER TABLE t DROP CONSTRAINT c;",
        "ALTER TABLE t RENAME TO u;",
        "ALTER TABLE t RENAME COLUMN a TO b;",
        "ALTER TABLE t ALTER COLUMN a TYPE bigint;",
        "ALTER TABLE t ALTER COLUMN a SET NOT NULL;",
        "ALTER TABLE t\n  ADD COLUMN a bigint\n  NOT NULL;",
        "ALTER TABLE t ADD COLUMN a bigint DEFAULT 0, ADD COLUMN b bigint NOT NULL;",
        "ALTER TABLE t ADD CONSTRAINT c CHECK(a > 0);",
        "ALTER TABLE t ADD CONSTRAINT c FOREIGN KEY (a) REFERENCES u (b);",
        "ALTER TABLE t ADD COLUMN a uuid REFERENCES u (b);",
        "ALTER TABLE t ADD CONSTRAINT c UNIQUE (a);",
        "CREATE UNIQUE INDEX i ON t (a);",
        "CREATE TABLE u (a bigint); ALTER TABLE t DROP COLUMN a;",
        "-- contract: unused for long\nALTER TABLE t DROP COLUMN a;",
        "ALTER TABLE t DROP COLUMN a; -- contract: unused since 1.4.0",
    ] {
        assert_eq!(problems_for_previous_release(sql).len(), 1, "{sql}");
    }
}
