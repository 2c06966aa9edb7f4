#!/usr/bin/env bash
# Prints the alert rules of deploy/observability as what the Prometheus operator takes. Its output is kept in
# components/monitoring/prometheus-rule.yaml; scripts/kubernetes-test.sh says when it is out of date.
set -euo pipefail
cd "$(dirname "$0")/../observability/alerts"
printf '# Made by deploy/kubernetes/prometheus-rule.sh.\n'
printf 'apiVersion: monitoring.coreos.com/v1\nkind: PrometheusRule\nmetadata:\n  name: assay\nspec:\n'
sed -e 's/^/  /' -e 's/ *$//' assay.yml
