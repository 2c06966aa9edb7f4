#!/usr/bin/env bash
# Generates the passwords and keys that docker-compose.yml mounts; existing files are kept.
# Usage: deploy/docker/secrets.sh [FOLDER]
set -euo pipefail
folder=${1:-$(cd "$(dirname "$0")" && pwd)/secrets}

# The folder's mode keeps other users of this machine out. The files are mounted into containers, where users
# with other ids have to read them.
mkdir -p "$folder"
chmod 0700 "$folder"

random() { od -An -N32 -tx1 /dev/urandom | tr -d ' \n'; }

# keep NAME CONTENT: never overwrites, and writes atomically.
keep() {
  [ -e "$folder/$1" ] && return
  printf '%s\n' "$2" >"$folder/.$1.new"
  chmod 0644 "$folder/.$1.new"
  mv "$folder/.$1.new" "$folder/$1"
}

keep service_token_secret "$(random)"
# Empty: there is one secret, but while it is changed (SECURITY.md).
keep service_token_accepted_secret ""
keep signing_keys "k1:$(random)"
keep postgres_password "$(random)"
keep grafana_password "$(random)"

# RabbitMQ reads its first user from a configuration file; services read theirs from a URL. Both get the same password.
if [ ! -e "$folder/rabbitmq_conf" ]; then
  password=$(random)
  rm -f "$folder/bus_url"
  keep bus_url "amqp://assay:$password@rabbitmq:5672/%2f"
  keep rabbitmq_conf "default_user = assay
default_pass = $password
vm_memory_high_watermark.absolute = 512MB
disk_free_limit.absolute = 1GB"
fi

# One database role per service; `postgres/roles.sh` creates them with the database.
roles=""
for service in registry ingest scoring export webhooks; do
  if [ ! -e "$folder/${service}_database_url" ]; then
    keep "${service}_database_url" "postgres://assay_$service:$(random)@postgres:5432/assay"
  fi
  password=$(sed 's#^postgres://[^:]*:\([^@]*\)@.*#\1#' "$folder/${service}_database_url")
  roles+="assay_$service $service $password"$'\n'
done
rm -f "$folder/database_roles"
keep database_roles "${roles%$'\n'}"

if [ ! -e "$folder/s3_identities" ]; then
  secret=$(random)
  rm -f "$folder/s3_secret_access_key"
  keep s3_secret_access_key "$secret"
  keep s3_identities '{"identities": [{"name": "assay", "credentials": [{"accessKey": "assay", "secretKey": "'"$secret"'"}],
  "actions": ["Read:assay", "Write:assay", "List:assay"]}]}'
fi
echo "secrets are in $folder"
