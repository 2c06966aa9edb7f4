#!/usr/bin/env bash
# The part of the official PostgreSQL image's entry point that docker-compose.yml uses: a new folder gets a
# database and a superuser with a password, the scripts of /docker-entrypoint-initdb.d run once, on the socket only.
set -euo pipefail

if [ ! -s "$PGDATA/PG_VERSION" ]; then
  # shellcheck disable=SC2086 # several words
  initdb --pgdata "$PGDATA" --username "$POSTGRES_USER" --pwfile "$POSTGRES_PASSWORD_FILE" ${POSTGRES_INITDB_ARGS:-} >/dev/null
  printf 'host all all all scram-sha-256\n' >>"$PGDATA/pg_hba.conf"
  pg_ctl --pgdata "$PGDATA" --wait --options "-c listen_addresses=''" start >/dev/null
  createdb --username "$POSTGRES_USER" "$POSTGRES_DB"
  for script in /docker-entrypoint-initdb.d/*.sh; do
    "$script"
  done
  pg_ctl --pgdata "$PGDATA" --wait stop >/dev/null
fi
exec "$@" -c listen_addresses='*'
