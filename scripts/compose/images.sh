# shellcheck shell=bash disable=SC2034,SC2154 # part of scripts/compose-test.sh and scripts/kubernetes-e2e.sh
# Chooses the Docker daemon and the images. `dockerd_options`: of a private daemon.

# Sets `kind`, `docker`, `compose_command`, and for a private daemon DOCKER_HOST and `daemon`.
choose_docker() {
  kind=${COMPOSE_TEST:-}
  if [ -z "$kind" ]; then
    kind=private
    if docker info >/dev/null 2>&1 && timeout 60 docker pull --quiet "$(image_of postgres)" >/dev/null 2>&1; then
      kind=real
    fi
  fi
  if [ "$kind" = private ]; then start_private_docker; else docker=docker; fi
  if "$docker" compose version >/dev/null 2>&1; then
    compose_command=("$docker" compose)
  else
    compose_command=(docker-compose)
  fi
  echo "$kind: $("$docker" version --format 'Docker {{.Server.Version}}'), ${compose_command[*]}"
}

start_private_docker() {
  if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    fail "no Docker daemon that reaches a registry; a private one needs root and Debian's packages"
  fi
  local missing=()
  [ -x /usr/sbin/dockerd ] || missing+=(docker.io)
  command -v docker-compose >/dev/null || missing+=(docker-compose)
  command -v iptables >/dev/null || missing+=(iptables)
  command -v mmdebstrap >/dev/null || missing+=(mmdebstrap)
  command -v ip >/dev/null || missing+=(iproute2)
  if [ ${#missing[@]} -gt 0 ]; then
    apt-get update -qq
    # No daemon of the machine is started: the test has its own.
    RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
  fi
  # Debian's client, which builds with BuildKit without a plugin.
  docker=/usr/bin/docker
  "$root/tests/compose/private-dockerd.sh" "$cache/docker" ${dockerd_options[@]+"${dockerd_options[@]}"}
  daemon=$(cat "$cache/docker/pid")
  export DOCKER_HOST="unix://$cache/docker/docker.sock" DOCKER_BUILDKIT=1
  unset DOCKER_CONTEXT
}

# The image that docker-compose.yml names for a service.
image_of() {
  sed -n "/^  $1:/,/^  [a-z]/s/^    image: //p" "$root/docker-compose.yml" | head -n 1
}

make_images() {
  if [ "$kind" = real ]; then
    "$docker" build --file "$root/deploy/docker/Dockerfile" --build-arg PROFILE="${COMPOSE_TEST_PROFILE:-release}" \
      --tag assay-compose-test:local "$root"
    return
  fi
  skip "the stage of the Dockerfile that compiles: no registry with its base image"
  skip "PostgreSQL, RabbitMQ and Prometheus as their projects publish them: stand-ins of Debian 13 bear the names of their images"
  skip "Grafana and the profile s3: Debian has no packages of them"
  make_base
  local service
  for service in postgres rabbitmq prometheus; do
    "$docker" build --quiet --target "$service" --tag "$(image_of "$service")" "$root/tests/compose" >/dev/null
  done
  make_executable
  "$docker" build --quiet --file "$root/deploy/docker/Dockerfile" --build-arg ROOT=prebuilt \
    --tag assay-compose-test:local "$work/context" >/dev/null
}

# Cached between runs: building takes half a minute.
make_base() {
  "$docker" image inspect assay-test/debian:13.1 >/dev/null 2>&1 && return
  local tar=$work/base.tar
  mmdebstrap --quiet --variant=minbase --mode=root --include=postgresql-17,rabbitmq-server,prometheus,wget trixie "$tar" \
    http://deb.debian.org/debian
  "$docker" import "$tar" assay-test/debian:13.1 >/dev/null
  rm -f "$tar"
}

# The contents of /image after the stage `build`, statically linked, with OpenSSL for TLS to PostgreSQL. A debug build, of which
# only what uses the database is compiled differently from `cargo build`.
make_executable() {
  local image=$work/context/image
  install -d "$image/var/lib"
  install -d -m 0750 "$image/var/lib/assay"
  install -D -m 0644 /etc/ssl/certs/ca-certificates.crt "$image/etc/ssl/certs/ca-certificates.crt"
  if [ -z "${COMPOSE_TEST_EXECUTABLE:-}" ]; then
    (cd "$root" && cargo rustc --locked --package assay --bin assay --features postgres-tls -- -C target-feature=+crt-static)
    COMPOSE_TEST_EXECUTABLE=$root/target/debug/assay
  fi
  install -D -m 0755 -s "$COMPOSE_TEST_EXECUTABLE" "$image/usr/local/bin/assay"
}
