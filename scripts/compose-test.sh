#!/usr/bin/env bash
# Brings docker-compose.yml up, runs the first steps of a user, opens the console, then checks its guarantees: permissions, published ports,
# secrets, and restarts after a kill.
#
# With a running Docker and its registry: the real images, and a build by the Dockerfile. Otherwise, as root on Debian: a
# private Docker daemon, substitute images made of Debian's packages, and a static executable in the Dockerfile's last
# stage. COMPOSE_TEST=private or real overrides the choice. Usage: scripts/compose-test.sh
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cache=${COMPOSE_TEST_CACHE:-$root/.local/compose}
port=${COMPOSE_TEST_PORT:-18080}
work=$(mktemp -d)
daemon=""
# shellcheck source=scripts/compose/images.sh
source "$root/scripts/compose/images.sh"
# shellcheck source=scripts/compose/checks.sh
source "$root/scripts/compose/checks.sh"

step() { printf '\n== %s (%s s)\n' "$1" "$SECONDS"; }
skip() { printf 'skipped: %s\n' "$1"; }
fail() { printf 'FAILED: %s\n' "$1" >&2; exit 1; }

finish() {
  local status=$?
  if [ -f "$work/project/docker-compose.yml" ]; then
    [ "$status" -eq 0 ] || compose logs --tail 30 2>/dev/null | tail -n 150 || true
    compose --profile tools --profile observability down --volumes --timeout 20 >/dev/null 2>&1 || true
  fi
  if [ -n "$daemon" ]; then
    kill "$daemon" 2>/dev/null || true
    for _ in $(seq 100); do kill -0 "$daemon" 2>/dev/null || break; sleep 0.1; done
  fi
  rm -rf "$work"
}
trap finish EXIT

# The private daemon publishes ports in its own network namespace.
outside() {
  if [ -n "$daemon" ]; then nsenter --net="/proc/$daemon/ns/net" "$@"; else "$@"; fi
}

compose() {
  (cd "$work/project" && ASSAY_IMAGE=assay-compose-test:local ASSAY_PUBLISH="127.0.0.1:$port" \
    COMPOSE_PROJECT_NAME=assay-compose-test "${compose_command[@]}" "$@")
}

container() { compose ps --quiet "$1"; }

step "Docker"
choose_docker
step "images"
make_images
step "a copy of what a user has, with secrets of its own"
mkdir -p "$work/project"
cp -r "$root/docker-compose.yml" "$root/deploy" "$root/examples" "$work/project/"
rm -rf "$work/project/deploy/docker/secrets"
secrets=$work/project/deploy/docker/secrets
"$work/project/deploy/docker/secrets.sh" >/dev/null
step "up"
compose up --detach --no-build
for service in postgres rabbitmq gateway agent-registry ingest scoring-worker export export-worker webhooks console; do
  await_healthy "$service"
done
step "a first user"
import_and_export
step "the console"
open_console
step "what it promises"
check_containers
check_published
check_secrets
check_database
step "Prometheus sees every role"
check_metrics
step "killed containers restart"
check_return
step "stopped in order and started again, nothing is lost"
check_restart
step "TLS to PostgreSQL"
check_tls
printf '\ncompose-test: passed in %s s, %s\n' "$SECONDS" "$kind"
