#!/usr/bin/env bash
# The development overlay in a real cluster of one node: API server, scheduler, controller manager, kubelet and kube-proxy of
# Kubernetes 1.20, made of Debian's source package, and containers in a private Docker daemon. Imports go on while pods are
# deleted, workers are scaled and a new image is rolled out; then every accepted conversation must be in an export exactly once
# (tests/kubernetes/scenario.py). Needs root on Debian 12 and some ten minutes for the first run. Not part of `make test`.
# Usage: scripts/kubernetes-e2e.sh
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
cache=${KUBERNETES_E2E_CACHE:-$root/.local/kubernetes-e2e}
tools=$cache/tools
daemon=""
# shellcheck source=scripts/compose/images.sh
source "$root/scripts/compose/images.sh"
# shellcheck source=scripts/kubernetes/build.sh
source "$root/scripts/kubernetes/build.sh"
# shellcheck source=scripts/kubernetes/cluster.sh
source "$root/scripts/kubernetes/cluster.sh"

step() { printf '\n== %s (%s s)\n' "$1" "$SECONDS"; }
skip() { printf 'skipped: %s\n' "$1"; }
fail() { printf 'FAILED: %s\n' "$1" >&2; exit 1; }

finish() {
  local status=$?
  [ "$status" -eq 0 ] || show_cluster || true
  stop_cluster
  rm -rf --one-file-system "$work"
}

for command in cargo npm openssl python3 flock sysctl; do
  command -v "$command" >/dev/null || fail "$command is not here"
done
refuse_a_node
mkdir -p "$cache"
exec 9>"$cache/lock"
flock --nonblock 9 || fail "another run uses $cache"
work=$(mktemp -d)
trap finish EXIT

step "Docker"
runtime_without_negative_scores
COMPOSE_TEST=private
dockerd_options=(--add-runtime "e2e=$cache/runc" --default-runtime e2e)
choose_docker
step "Kubernetes"
build_kubernetes
step "images"
make_images
"$docker" tag assay-compose-test:local assay:local
printf 'FROM assay:local\nLABEL e2e=next\n' | "$docker" build --quiet --tag assay:next - >/dev/null
make_pause_image
step "control plane and node"
start_cluster
step "the development overlay"
kubectl create namespace assay
"$root/deploy/kubernetes/secrets.sh" --dev | kubectl create --filename - >/dev/null
apply_overlay
kubectl --namespace assay wait --for=condition=complete job/migrate --timeout=5m
step "imports beside faults"
in_cluster_network env PATH="$cache/bin:$PATH" KUBECONFIG="$work/kubeconfig" python3 "$root/tests/kubernetes/scenario.py" \
  --url "http://$(address_of gateway):8080" --examples "$root/examples" --image assay:next
printf '\nkubernetes-e2e: passed in %s s, Kubernetes %s\n' "$SECONDS" "$(kubectl version --short | sed -n 's/^Server Version: //p')"
