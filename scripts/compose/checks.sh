# shellcheck shell=bash disable=SC2154 # part of scripts/compose-test.sh
# First steps of a user, and checks of the containers.

roles=(gateway agent-registry ingest scoring-worker export export-worker webhooks console)
url=http://127.0.0.1:$port

await_healthy() {
  local state="" id
  for _ in $(seq 180); do
    id=$(container "$1")
    state=$([ -n "$id" ] && "$docker" inspect --format '{{.State.Health.Status}}' "$id" || echo absent)
    [ "$state" = healthy ] && return
    sleep 0.5
  done
  fail "$1 is $state after 90 seconds"
}

call() { outside curl --silent --show-error --fail --max-time 20 --header "Authorization: Bearer $key" "$@"; }

field() { python3 -c 'import json, sys; print(json.load(sys.stdin).get(sys.argv[1], ""))' "$1"; }

# The steps of deploy/docker/README, with the image's executable as client.
import_and_export() {
  key=$(compose run --rm -T tools keys create --organization acme 2>/dev/null)
  [[ $key == asy_* ]] || fail "no key was printed"
  conversations=$(wc -l <"$root/examples/conversations.jsonl")
  "$docker" run --rm --interactive --network container:"$(container gateway)" --read-only --tmpfs /tmp \
    --volume "$work/project/examples:/examples:ro" --env ASSAY_API_KEY="$key" assay-compose-test:local \
    import --agents /examples/agents.jsonl --refused /tmp/refused - <"$root/examples/conversations.jsonl" >"$work/out" 2>&1 \
    || fail "the import failed: $(cat "$work/out")"
  grep -q "$conversations accepted" "$work/out" || fail "the import accepted others than $conversations: $(cat "$work/out")"
  import_by_curl
  download
}

# Each line again through the published port: a 202, or a 409 with the existing ticket.
import_by_curl() {
  local line status accepted=0
  while IFS= read -r line; do
    status=$(outside curl --silent --output "$work/answer" --write-out '%{http_code}' --max-time 20 \
      --header "Authorization: Bearer $key" --header 'Content-Type: application/json' --data-binary "$line" "$url/v1/assess")
    case $status in
      202 | 409) accepted=$((accepted + 1)) ;;
      *) fail "an import was answered $status: $(cat "$work/answer")" ;;
    esac
  done <"$root/examples/conversations.jsonl"
  [ "$accepted" -eq "$conversations" ] || fail "$accepted of $conversations conversations are there"
  echo "$conversations conversations are there"
}

download() {
  local id status="" rows
  id=$(call --header 'Content-Type: application/json' --data '{"kind":"axis"}' "$url/v1/evaluations/exports" | field id)
  for _ in $(seq 240); do
    status=$(call "$url/v1/evaluations/exports/$id" | field status)
    [ "$status" = complete ] && break
    [ "$status" = failed ] && fail "the export failed"
    sleep 0.25
  done
  [ "$status" = complete ] || fail "the export is $status after a minute"
  call --location --output "$work/axis.csv" "$url/v1/evaluations/exports/$id/download"
  rows=$(python3 -c 'import csv, sys; print(sum(1 for _ in csv.reader(open(sys.argv[1], newline="", encoding="utf-8"))) - 1)' "$work/axis.csv")
  [ "$rows" -eq "$conversations" ] || fail "the file has $rows rows for $conversations conversations"
  echo "a file of $rows rows downloaded"
}

# Signs in to the console by a one-time address, as a browser does for a person who typed it, and opens the list.
open_console() {
  local link status cookies=$work/cookies
  link=$(compose run --rm -T tools console link --organization acme --url "$url" 2>/dev/null)
  [[ $link == "$url/console/sign-in?token="* ]] || fail "no address that signs in was printed: $link"
  status=$(outside curl --silent --show-error --max-time 20 --cookie-jar "$cookies" --header 'Sec-Fetch-Site: none' \
    --output "$work/answer" --write-out '%{http_code}' "$link")
  [ "$status" = 303 ] || fail "signing in was answered $status: $(cat "$work/answer")"
  status=$(outside curl --silent --show-error --max-time 20 --cookie "$cookies" --output "$work/answer" --write-out '%{http_code}' \
    "$url/console/conversations")
  [ "$status" = 200 ] || fail "the list of the console was answered $status: $(cat "$work/answer")"
  grep -q " of $conversations</span>" "$work/answer" || fail "the list does not have $conversations conversations: $(cat "$work/answer")"
  rm "$cookies"
  echo "signed in, and $conversations conversations are listed"
}

inspect() { "$docker" inspect --format "$2" "$(container "$1")"; }

check_containers() {
  local service
  for service in "${roles[@]}" postgres rabbitmq; do
    [ "$(inspect "$service" '{{.HostConfig.ReadonlyRootfs}}')" = true ] || fail "$service can write to its root"
    [ "$(inspect "$service" '{{.HostConfig.CapDrop}}')" = "[ALL]" ] || fail "$service keeps capabilities"
    [[ $(inspect "$service" '{{.HostConfig.SecurityOpt}}') == *no-new-privileges* ]] || fail "$service may gain privileges"
    [ "$(inspect "$service" '{{.HostConfig.Memory}}')" -gt 0 ] || fail "$service has no limit of memory"
    check_process "$service"
  done
  # Verified by running the executable.
  if compose exec -T -e ASSAY_TELEMETRY__METRICS_LISTEN= gateway /usr/local/bin/assay standalone --listen 127.0.0.1:0 --data-dir /etc/data \
    >"$work/out" 2>&1; then
    fail "the gateway's container could write to /etc"
  fi
  grep -qi 'read-only' "$work/out" || fail "a write to /etc was refused for another reason: $(cat "$work/out")"
  echo "no root, no capabilities, nothing to write to"
}

# From /proc, where the containers are processes of this machine.
check_process() {
  local status
  status=/proc/$(inspect "$1" '{{.State.Pid}}')/status
  [ -n "$daemon" ] || return 0
  grep -q '^Uid:.*\b0\b' "$status" && fail "$1 runs as root"
  grep -q '^CapEff:[[:space:]]*0*$' "$status" || fail "$1 has capabilities: $(grep ^CapEff "$status")"
}

check_published() {
  local published
  published=$("$docker" ps --filter label=com.docker.compose.project=assay-compose-test --format '{{.Names}} {{.Ports}}' | grep -- '->' || true)
  [ "$(wc -l <<<"$published")" -eq 1 ] || fail "more than the gateway is published: $published"
  [[ $published == *gateway*"127.0.0.1:$port->8080/tcp"* ]] || fail "published otherwise than for this machine alone: $published"
  echo "published: $published"
}

# No line of a secret file may appear in what Docker or the kernel show of a container.
check_secrets() {
  local secret id shown=$work/shown
  for id in $("$docker" ps --quiet --filter label=com.docker.compose.project=assay-compose-test); do
    "$docker" inspect "$id"
    "$docker" logs "$id" 2>&1
    [ -z "$daemon" ] || tr '\0' '\n' <"/proc/$("$docker" inspect --format '{{.State.Pid}}' "$id")/environ"
  done >"$shown"
  compose config >>"$shown"
  "$docker" history --no-trunc assay-compose-test:local >>"$shown"
  local found=0
  # Every password and key is 64 hexadecimal digits.
  for secret in $(cat "$secrets"/* | grep -oE '[0-9a-f]{64}' | sort -u); do
    found=$((found + 1))
    if grep -q "$secret" "$shown"; then fail "a secret is shown: $(grep -l "$secret" "$secrets"/*)"; fi
  done
  [ "$found" -ge 9 ] || fail "only $found secrets were looked for"
  echo "$found secrets looked for in what Docker shows, in environments and in logs: none is there"
}

check_database() {
  local psql=(compose exec -T postgres psql --no-psqlrc --quiet --tuples-only)
  local ingest_url
  ingest_url=$(cat "$secrets/ingest_database_url")
  "${psql[@]}" "$ingest_url" --command 'SELECT 1 FROM ingest.conversations LIMIT 0' >/dev/null 2>"$work/out" \
    || fail "ingest's role cannot read its own schema: $(cat "$work/out")"
  if "${psql[@]}" "$ingest_url" --command 'SELECT 1 FROM registry.api_keys LIMIT 0' >/dev/null 2>"$work/out"; then
    fail "ingest's role reads another service's schema"
  fi
  grep -q 'permission denied' "$work/out" || fail "refused for another reason: $(cat "$work/out")"
  if "${psql[@]}" "postgres://assay_ingest:wrong@postgres:5432/assay" --command 'SELECT 1' >/dev/null 2>&1; then
    fail "the database takes any password"
  fi
  # Run again, as after an upgrade with a new service: idempotent.
  compose exec -T postgres /docker-entrypoint-initdb.d/roles.sh
  echo "each role of the database reads its own schema only"
}

# Queried inside Prometheus' container: its port is not published.
check_metrics() {
  local id up="" wanted=$((${#roles[@]} + 1))
  compose --profile observability up --detach --no-build prometheus >/dev/null 2>&1
  await_healthy prometheus
  id=$(container prometheus)
  for _ in $(seq 60); do
    up=$("$docker" exec "$id" wget --quiet --output-document=- "http://127.0.0.1:9090/api/v1/query?query=up" \
      | python3 -c 'import json, sys; print(sum(r["value"][1] == "1" for r in json.load(sys.stdin)["data"]["result"]))')
    [ "$up" -eq "$wanted" ] && break
    sleep 1
  done
  [ "$up" -eq "$wanted" ] || fail "Prometheus reads $up of $wanted processes"
  "$docker" exec "$id" wget --quiet --output-document=- "http://127.0.0.1:9090/api/v1/rules" | grep -q AssayProcessDown \
    || fail "Prometheus has no alerts"
  echo "$up processes are read, the alerts are there"
}

check_return() {
  local service pid
  if [ -z "$daemon" ]; then
    skip "killing processes: the containers may run on another machine"
    return
  fi
  for service in gateway ingest scoring-worker rabbitmq; do
    pid=$(inspect "$service" '{{.State.Pid}}')
    # Not by `docker kill`, after which no policy restarts a container.
    kill -9 "$pid"
    for _ in $(seq 100); do
      [ "$(inspect "$service" '{{.State.Running}} {{.State.Pid}}')" != "true $pid" ] && break
      sleep 0.1
    done
  done
  for service in rabbitmq "${roles[@]}"; do await_healthy "$service"; done
  import_by_curl
  download
}

check_restart() {
  compose stop >/dev/null 2>&1
  local service code
  for service in "${roles[@]}"; do
    code=$("$docker" inspect --format '{{.State.ExitCode}}' "$("$docker" ps --all --quiet \
      --filter label=com.docker.compose.project=assay-compose-test --filter "label=com.docker.compose.service=$service" \
      --filter label=com.docker.compose.oneoff=False)")
    [ "$code" = 0 ] || fail "$service ended with $code"
  done
  compose up --detach --no-build >/dev/null 2>&1
  for service in "${roles[@]}"; do await_healthy "$service"; done
  import_by_curl
  download
}

# The image on a PostgreSQL with TLS: `migrate` as every service, with the server verified by a file and by the image's roots.
check_tls() {
  local tls=$work/tls
  install -d -m 0755 "$tls"
  certificate "$tls/ca" authority "basicConstraints=critical,CA:TRUE"
  certificate "$tls/other" other "basicConstraints=critical,CA:TRUE"
  certificate "$tls/server" postgres "subjectAltName=DNS:postgres" -CA "$tls/ca.crt" -CAkey "$tls/ca.key"
  for file in server.crt server.key; do
    compose exec -T postgres sh -c "umask 077; cat >\$PGDATA/$file" <"$tls/$file"
  done
  compose exec -T postgres psql --quiet --username postgres --dbname assay \
    --command "ALTER SYSTEM SET ssl = on" --command "SELECT pg_reload_conf()" >/dev/null
  for _ in $(seq 50); do
    migrate_over_tls "$tls/ca.crt" /etc/assay/ca.crt && break
    sleep 0.2
  done
  [ "$(grep -c 'up to date' "$work/out")" -eq 5 ] || fail "no migration over TLS: $(cat "$work/out")"
  migrate_over_tls "$tls/ca.crt" /etc/ssl/certs/ca-certificates.crt system || fail "the image's roots are not used: $(cat "$work/out")"
  if migrate_over_tls "$tls/other.crt" /etc/assay/ca.crt; then fail "another authority is trusted"; fi
  grep -q 'certificate verify failed' "$work/out" || fail "another authority is refused for another reason: $(cat "$work/out")"
  echo "migrated over verified TLS; another authority is refused"
}

# certificate PATH NAME EXTENSION [ISSUER…]: PATH.crt and PATH.key.
certificate() {
  local path=$1 name=$2 extension=$3
  shift 3
  openssl req -x509 -nodes -days 2 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -config "$root/tests/compose/openssl.cnf" \
    -subj "/CN=$name" -addext "$extension" -out "$path.crt" -keyout "$path.key" "$@" 2>/dev/null
  chmod 0644 "$path.crt"
}

# migrate_over_tls CERTIFICATE PATH [ROOTS]: with the certificate of an authority at PATH in the container.
migrate_over_tls() {
  local arguments=() service
  install -d -m 0755 "$work/urls"
  for service in registry ingest scoring export webhooks; do
    printf '%s?sslmode=verify-full&sslrootcert=%s' "$(cat "$secrets/${service}_database_url")" "${3:-$2}" >"$work/urls/$service"
    arguments+=(--env "ASSAY_${service^^}__DATABASE_URL_FILE=/urls/$service")
  done
  "$docker" run --rm --network container:"$(container ingest)" --read-only --tmpfs /tmp --volume "$work/urls:/urls:ro" \
    --volume "$1:$2:ro" "${arguments[@]}" assay-compose-test:local migrate >"$work/out" 2>&1
}
