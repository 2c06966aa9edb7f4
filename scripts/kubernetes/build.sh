# shellcheck shell=bash disable=SC2154 # part of scripts/kubernetes-e2e.sh
# Kubernetes of Debian's source package, its etcd and the tools of the node.

# Into $cache/bin; four minutes for the first time on an idle machine.
build_kubernetes() {
  local components=(kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl) name missing=()
  install_packages
  for name in "${components[@]}"; do
    [ -x "$cache/bin/$name" ] || missing+=("cmd/$name")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  get_source
  (
    cd "$cache/source"
    # The build expects to be below GOPATH.
    mkdir -p .go/src/k8s.io "$work/home"
    ln -sfn ../../.. .go/src/k8s.io/kubernetes
    GOPATH=$PWD/.go CGO_ENABLED=0 HOME=$work/home make WHAT="${missing[*]}" >"$cache/build.log" 2>&1
  ) || fail "the build of Kubernetes: $(tail -n 20 "$cache/build.log")"
  install -D --target-directory "$cache/bin" "${missing[@]/#cmd/$cache/source/_output/bin}"
  rm -rf "$cache/source"
}

install_packages() {
  local missing=() package
  for package in etcd-server golang-go dpkg-dev dnsmasq-base conntrack rsync; do
    dpkg-query --show --showformat='${Status}' "$package" 2>/dev/null | grep -q '^install ok' || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  apt-get update -qq
  # RUNLEVEL=1: no etcd of the machine is started.
  RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# A list of sources of its own: most machines list no source packages.
get_source() {
  local apt=(apt-get -qq -o Dir::Etc::SourceList="$work/sources.list" -o Dir::Etc::SourceParts=- -o Dir::State::Lists="$work/lists")
  mkdir -p "$work/lists/partial" "$work/download" "$cache"
  echo 'deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm main' \
    >"$work/sources.list"
  "${apt[@]}" update
  rm -rf "$cache/source"
  # apt has verified the package against the signed index.
  (cd "$work/download" && "${apt[@]}" source --download-only kubernetes \
    && dpkg-source --no-check --extract kubernetes_*.dsc "$cache/source") >"$work/source.log" 2>&1 \
    || fail "Debian's source package of Kubernetes could not be fetched: $(tail -n 5 "$work/source.log")"
}
