#!/usr/bin/env bash
# What `make run` builds (ADR 30): it is small, does what the README shows, and refuses by name what it leaves out.
# Usage: scripts/first-start-test.sh PATH_OF_ASSAY
set -euo pipefail

assay=$(realpath "$1")
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
server=""
finish() {
  if [ -n "$server" ]; then
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
  fi
  rm -rf "$folder"
}
trap finish EXIT

fail() {
  echo "first-start-test: $1" >&2
  exit 1
}

megabytes=$(($(stat -c %s "$assay") / 1000000))
[ "$megabytes" -le 60 ] || fail "the executable has $megabytes MB, more than 60"

# The command must fail, with a message that names the text and says what to build.
refuses() {
  local text=$1 output
  shift
  if output=$(timeout 60 "$@" 2>&1); then fail "not refused: $*"; fi
  for expected in "$text" 'does not have: build with `cargo build --release`'; do
    grep -qF -- "$expected" <<<"$output" || fail "no \"$expected\" in what \"$*\" says: $output"
  done
}
refuses "is PostgreSQL's" env ASSAY_REGISTRY__DATABASE_URL=postgres://u@127.0.0.1/a "$assay" keys list --organization a
refuses "is PostgreSQL's" "$assay" migrate
secret=0123456789abcdef0123456789abcdef
export ASSAY_SECURITY__SERVICE_TOKEN_SECRET=$secret ASSAY_SECURITY__SIGNING_KEYS=first:$secret
refuses "bus.url is RabbitMQ's" env ASSAY_SCORING__DATABASE_URL="sqlite:$folder/s.db" "$assay" scoring-worker
refuses "it is an S3 address" env ASSAY_OBJECTS__URL=s3://files/of/assay ASSAY_BUS__URL=local: \
  ASSAY_EXPORT__DATABASE_URL="sqlite:$folder/e.db" "$assay" export
refuses "it needs OTLP" env ASSAY_TELEMETRY__OTLP_ENDPOINT=http://127.0.0.1:4318 \
  "$assay" standalone --listen 127.0.0.1:0 --data-dir "$folder/otlp"
"$assay" --help | grep -qF 'it has no PostgreSQL, RabbitMQ, S3 and OTLP' || fail "--help does not say what is missing"

export ASSAY_API_KEY="first-start-$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')"
ASSAY_BOOTSTRAP_API_KEY=$ASSAY_API_KEY "$assay" standalone --listen 127.0.0.1:0 --data-dir "$folder/data" \
  >"$folder/out" 2>"$folder/log" &
server=$!
address=""
for _ in $(seq 300); do
  address=$(sed -n 's/^assay listens on //p' "$folder/out")
  [ -n "$address" ] && "$assay" healthcheck --url "$address/readyz" 2>/dev/null && break
  kill -0 "$server" || fail "it does not start: $(cat "$folder/log")"
  sleep 0.1
done
export ASSAY_URL=$address
"$assay" import --wait --agents examples/agents.jsonl examples/conversations.jsonl >"$folder/import" 2>&1 ||
  fail "import: $(cat "$folder/import")"
"$assay" export --kind axis --out "$folder/axis.csv" >/dev/null 2>&1 || fail "export"
rows=$(($(wc -l <"$folder/axis.csv") - 1))
[ "$rows" -ge 12 ] || fail "$rows rows in the export"
"$assay" tickets show "$(sed -n '2s/,.*//p' "$folder/axis.csv")" | grep -q "Resolution accuracy" || fail "tickets show"
"$assay" keys create --organization default --data-dir "$folder/data" >/dev/null || fail "keys create"
echo "first-start-test: $megabytes MB, $rows conversations scored"
