#!/usr/bin/env bash
# Builds CHANGELOG.md from the files in changes/ with towncrier. Usage: scripts/changelog.sh --version 0.1.0 [--draft]
# With --draft it only prints what would be written.
set -euo pipefail
cd "$(dirname "$0")/.."

environment=.local/changelog
if ! command -v python3 >/dev/null; then
  echo "changelog: it needs python3 with venv and pip" >&2
  exit 1
fi
if [ ! -x "$environment/bin/towncrier" ]; then
  python3 -m venv "$environment"
  "$environment/bin/pip" install --quiet 'towncrier>=25,<26'
fi
case " $* " in
  *" --draft "*) ;;
  *) set -- "$@" --yes ;;
esac
"$environment/bin/towncrier" build "$@"
