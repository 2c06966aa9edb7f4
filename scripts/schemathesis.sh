#!/usr/bin/env bash
# Sends generated requests to a standalone, from its own OpenAPI document, and checks every answer against it:
# no server error, no undocumented status, media type or body. Usage: scripts/schemathesis.sh PATH_OF_ASSAY
set -euo pipefail

assay=$(realpath "$1")
root=$(cd "$(dirname "$0")/.." && pwd)
environment="$root/.local/schemathesis"
folder=$(mktemp -d)
key="schemathesis-$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')"

if ! command -v python3 >/dev/null; then
  echo "schemathesis: skipped, it needs python3 with venv and pip"
  [ -z "${CI:-}" ]
  exit
fi
if [ ! -x "$environment/bin/schemathesis" ]; then
  python3 -m venv "$environment"
  "$environment/bin/pip" install --quiet 'schemathesis>=4,<5'
fi

ASSAY_BOOTSTRAP_API_KEY="$key" "$assay" standalone --listen 127.0.0.1:0 --data-dir "$folder/data" \
  >"$folder/out" 2>"$folder/log" &
server=$!
finish() {
  kill "$server" 2>/dev/null || true
  wait "$server" 2>/dev/null || true
  rm -rf "$folder"
}
trap finish EXIT

address=""
for _ in $(seq 100); do
  address=$(sed -n 's/^assay listens on //p' "$folder/out")
  [ -n "$address" ] && "$assay" healthcheck --url "$address/readyz" 2>/dev/null && break
  kill -0 "$server" || { cat "$folder/log"; exit 1; }
  sleep 0.1
done
# Registers the sample's agents, so that some imports of AI conversations are accepted.
"$assay" import --url "$address" --key "$key" --agents "$root/examples/agents.jsonl" \
  --refused "$folder/refused" "$root/examples/conversations.jsonl" >/dev/null

cd "$folder"
"$environment/bin/schemathesis" run "$address/openapi.json" \
  --header "Authorization: Bearer $key" \
  --checks not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance \
  --phases examples,coverage,fuzzing \
  --max-examples "${SCHEMATHESIS_EXAMPLES:-40}" \
  --seed 20261120 \
  --suppress-health-check all \
  --no-color || { echo "--- log of the server"; grep -v ' INFO ' "$folder/log" | tail -50; exit 1; }
