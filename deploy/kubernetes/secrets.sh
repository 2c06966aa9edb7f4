#!/usr/bin/env bash
# Prints the Secrets of the manifests with new passwords and keys. `kubectl create` never overwrites existing ones:
#
#   deploy/kubernetes/secrets.sh | kubectl create -f -            # production, with the operators of components/operators
#   deploy/kubernetes/secrets.sh --dev | kubectl create -f -      # overlays/dev
set -euo pipefail
case ${1:-} in
  # The path of the authority's certificate is that of components/postgres-ca.
  "") postgres=assay-postgres-rw rabbitmq=assay-rabbitmq tls="?sslmode=verify-full&sslrootcert=/etc/assay/postgres/ca.crt" ;;
  --dev) postgres=postgres rabbitmq=rabbitmq tls="" ;;
  *) echo "usage: secrets.sh [--dev]" >&2; exit 2 ;;
esac

random() { od -An -N32 -tx1 /dev/urandom | tr -d ' \n'; }

# secret NAME TYPE KEY VALUE [KEY VALUE]…
secret() {
  printf -- '---\napiVersion: v1\nkind: Secret\nmetadata: {name: %s, namespace: assay}\ntype: %s\nstringData:\n' "$1" "$2"
  shift 2
  while [ $# -gt 0 ]; do
    # As JSON strings, which are valid YAML: only newlines need escaping.
    printf '  %s: "%s"\n' "$1" "${2//$'\n'/\\n}"
    shift 2
  done
}

secret assay-service-token Opaque secret "$(random)"
secret assay-signing-keys Opaque keys "k1:$(random)"

roles=""
for service in registry ingest scoring export webhooks; do
  password=$(random)
  secret "assay-database-$service" Opaque url "postgres://assay_$service:$password@$postgres:5432/assay$tls"
  if [ $# -eq 0 ]; then
    secret "assay-postgres-$service" kubernetes.io/basic-auth username "assay_$service" password "$password"
  fi
  roles+="assay_$service $service $password"$'\n'
done

password=$(random)
user="default_user = assay
default_pass = $password
"
# With the namespace: KEDA connects from another one.
secret assay-bus Opaque url "amqp://assay:$password@$rabbitmq.assay.svc:5672/%2f"
if [ $# -eq 0 ]; then
  secret assay-rabbitmq-user Opaque username assay password "$password" default_user.conf "$user" provider rabbitmq \
    type rabbitmq host "$rabbitmq.assay.svc" port 5672
else
  secret assay-dev-postgres Opaque postgres_password "$(random)" database_roles "$roles"
  secret assay-dev-rabbitmq Opaque rabbitmq_conf "$user"
fi
