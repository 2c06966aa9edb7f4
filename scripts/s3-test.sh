#!/usr/bin/env bash
# Exports in an S3 store: the store's tests, then end to end with every role as a process: imports, a multipart
# export, its download as a whole and in ranges. The server is moto's, which checks no signatures.
# Usage: scripts/s3-test.sh FOLDER_OF_EXECUTABLES
set -euo pipefail

bin=$(realpath "$1")
root=$(cd "$(dirname "$0")/.." && pwd)
environment=$root/.local/s3
work=$(mktemp -d)
server="" stack=""
# A part has 5 MiB. Ticket ids of 900 characters make rows of 1.6 kB, so that few conversations have to be scored.
copies=${S3_TEST_COPIES:-300}

if ! command -v python3 >/dev/null || ! python3 -c 'import venv, ensurepip' 2>/dev/null; then
  echo "S3: skipped, it needs python3 with venv and pip"
  [ -z "${CI:-}" ]
  exit
fi
if [ ! -x "$environment/bin/moto_server" ]; then
  python3 -m venv "$environment"
  "$environment/bin/pip" install --quiet 'moto[server]==5.2.5'
fi

end() {
  if [ -n "$1" ]; then
    kill "$1" 2>/dev/null || true
    wait "$1" 2>/dev/null || true
  fi
}
finish() {
  local status=$?
  if [ "$status" -ne 0 ]; then
    tail -n 20 "$work/server" 2>/dev/null || true
    tail -n 20 "$work"/stack/logs/*.log 2>/dev/null || true
  fi
  end "$stack"
  end "$server"
  rm -rf "$work"
}
trap finish EXIT
fail() { echo "S3: $1" >&2; exit 1; }

# await FILE PATTERN PROCESS: waits for the first match of PATTERN in FILE while PROCESS runs.
await() {
  local found=""
  for _ in $(seq 600); do
    found=$(sed -nE "s#$2#\1#p" "$1" | head -n 1)
    [ -n "$found" ] && { echo "$found"; return; }
    kill -0 "$3" 2>/dev/null || { cat "$1" >&2; fail "a process ended early"; }
    sleep 0.1
  done
  cat "$1" >&2
  fail "nothing was heard within a minute"
}

"$environment/bin/moto_server" -H 127.0.0.1 -p 0 >"$work/server" 2>&1 &
server=$!
endpoint=$(await "$work/server" '.*Running on (http://[0-9.:]+).*' "$server")
curl --silent --fail --request PUT "$endpoint/assay" >/dev/null

cd "$root"
if cargo nextest --version >/dev/null 2>&1; then
  ASSAY_TEST_S3_ENDPOINT=$endpoint cargo nextest run --package assay-platform --test s3 --run-ignored only
else
  ASSAY_TEST_S3_ENDPOINT=$endpoint cargo test --package assay-platform --test s3 -- --ignored
fi

export ASSAY_STACK_DIR=$work/stack ASSAY_GATEWAY__LISTEN=127.0.0.1:0
export ASSAY_OBJECTS__URL=s3://assay/exports ASSAY_OBJECTS__OPTIONS__AWS_ENDPOINT=$endpoint
export ASSAY_OBJECTS__OPTIONS__AWS_ALLOW_HTTP=true ASSAY_OBJECTS__OPTIONS__AWS_REGION=us-east-1
export ASSAY_OBJECTS__OPTIONS__AWS_ACCESS_KEY_ID=id
printf 'secret\n' >"$work/secret"
export ASSAY_OBJECTS__OPTIONS__AWS_SECRET_ACCESS_KEY_FILE=$work/secret
chmod 0755 "$work" # PostgreSQL runs as another user
"$bin/assay-stack" up >"$work/stack.out" 2>&1 &
stack=$!
url=$(await "$work/stack.out" '.*assay is ready at (http://[^ ]+).*' "$stack")
key=$("$bin/assay-stack" key --organization acme)
call() { curl --silent --show-error --fail --max-time 60 --header "Authorization: Bearer $key" "$@"; }
field() { python3 -c 'import json, sys; print(json.load(sys.stdin).get(sys.argv[1], ""))' "$1"; }

# Many copies of the sample with new ids.
python3 - "$root/examples/conversations.jsonl" "$copies" >"$work/many.jsonl" <<'PYTHON'
import json
import sys

lines = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
for copy in range(int(sys.argv[2])):
    for line in lines:
        print(json.dumps(line | {"ticket_id": f"{line['ticket_id']}-{copy}-".ljust(900, "0")}))
PYTHON
"$bin/assay" import --wait --url "$url" --key "$key" --concurrency 32 --agents "$root/examples/agents.jsonl" "$work/many.jsonl"
id=$(call --header 'Content-Type: application/json' --data '{"kind":"axis"}' "$url/v1/evaluations/exports" | field id)
for _ in $(seq 600); do
  status=$(call "$url/v1/evaluations/exports/$id" | field status)
  [ "$status" = complete ] && break
  [ "$status" = failed ] && fail "the export failed"
  sleep 0.2
done
[ "$status" = complete ] || fail "the export is $status after two minutes"

address=$(call "$url/v1/evaluations/exports/$id" | field download_url)
curl --silent --fail --output "$work/file.csv" "$address"
rows=$(python3 -c 'import csv, sys; print(sum(1 for _ in csv.reader(open(sys.argv[1], newline="", encoding="utf-8"))) - 1)' "$work/file.csv")
bytes=$(stat --format %s "$work/file.csv")
[ "$rows" -eq "$(wc -l <"$work/many.jsonl")" ] || fail "$rows rows of $(wc -l <"$work/many.jsonl") conversations"
[ "$bytes" -gt 5242880 ] || fail "the file is of one part only: $bytes bytes"
for range in 0-0 5242870-5242890 1000000-7000000 -1; do
  status=$(curl --silent --output "$work/part" --write-out '%{http_code}' --header "Range: bytes=$range" "$address")
  [ "$status" = 206 ] || fail "the range $range is answered $status"
  python3 - "$work/file.csv" "$work/part" "$range" "$bytes" <<'PYTHON' || fail "the range $range has other bytes"
import sys

whole, part = (open(path, "rb").read() for path in sys.argv[1:3])
first, last = sys.argv[3].split("-")
first, last = (len(whole) - int(last), len(whole) - 1) if first == "" else (int(first), min(int(last), len(whole) - 1))
sys.exit(part != whole[first : last + 1])
PYTHON
done
# The file is in the bucket, without leftover parts.
listed=$(curl --silent --fail "$endpoint/assay?list-type=2&prefix=exports/")
[[ $listed == *"<Size>$bytes</Size>"* ]] || fail "the bucket does not hold the file"
[[ $(curl --silent --fail "$endpoint/assay?uploads") != *"<UploadId>"* ]] || fail "an upload was left in the bucket"
echo "S3: $rows rows, $bytes bytes, in several parts, downloaded whole and in ranges"
