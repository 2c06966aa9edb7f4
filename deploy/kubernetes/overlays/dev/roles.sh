#!/usr/bin/env bash
# Creates a database role and its schema for each service. The entry point of the PostgreSQL image runs it
# when the database is created; run again (see deploy/docker/README.md) it adds missing roles and resets the passwords.
# `database_roles` has a line for each: ROLE SCHEMA PASSWORD.
set -euo pipefail

export PGOPTIONS='--client-min-messages=warning'

run_sql() {
  psql --quiet --no-psqlrc --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname "$POSTGRES_DB"
}

run_sql <<'SQL'
REVOKE ALL ON SCHEMA public FROM PUBLIC;
REVOKE CONNECT ON DATABASE :"DBNAME" FROM PUBLIC;
SQL

# Passed in environment variables, so that no password is visible in the process list.
while read -r ROLE SCHEMA PASSWORD; do
  export ROLE SCHEMA PASSWORD
  run_sql <<'SQL'
\getenv role ROLE
\getenv schema SCHEMA
\getenv password PASSWORD
SELECT format('CREATE ROLE %I', :'role') WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = :'role') \gexec
ALTER ROLE :"role" LOGIN PASSWORD :'password';
CREATE SCHEMA IF NOT EXISTS :"schema" AUTHORIZATION :"role";
GRANT CONNECT ON DATABASE :"DBNAME" TO :"role";
SQL
done </run/secrets/database_roles
