#!/usr/bin/env bash
# Starts a Docker daemon with a separate folder, socket and network; it shares nothing with the daemon of the machine. To
# stop it, end the process in the pid file. The socket is FOLDER/docker.sock, the process id in
# FOLDER/pid. Usage: private-dockerd.sh FOLDER [OPTION OF DOCKERD]…
set -euo pipefail
folder=$1
shift
mkdir -p "$folder/data" "$folder/exec"
rm -f "$folder/docker.sock" "$folder/pid"
# In a separate network namespace, so that neither addresses nor packet filters of the machine are touched.
setsid unshare --net sh -c 'ip link set lo up && exec "$@"' sh \
  dockerd --data-root "$folder/data" --exec-root "$folder/exec" --pidfile "$folder/pid" \
  --host "unix://$folder/docker.sock" "$@" >"$folder/log" 2>&1 &
started=$!
for _ in $(seq 300); do
  if docker --host "unix://$folder/docker.sock" info >/dev/null 2>&1; then
    exit 0
  fi
  kill -0 "$started" 2>/dev/null || break
  sleep 0.1
done
echo "the Docker daemon did not start; the end of $folder/log:" >&2
tail -n 15 "$folder/log" >&2
kill "$started" 2>/dev/null || true
exit 1
