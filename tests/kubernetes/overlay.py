"""Checks a built overlay: every pod is restricted, every reference leads somewhere, and exactly the connections of
ARCHITECTURE.md are open between pods. Prints the objects of operators as JSON, for operators.mjs.

Usage: overlay.py BUILT.yaml SECRETS.yaml [rotation]; with `rotation`, while the service secret is changed
"""

import ipaddress
import json
import re
import sys

import yaml

CORE = ("v1", "apps/v1", "batch/v1", "policy/v1", "autoscaling/v2", "networking.k8s.io/v1")

# Caller, callee, port: see ARCHITECTURE.md.
CALLS = {
    ("gateway", "agent-registry", 8081),
    ("gateway", "ingest", 8082),
    ("gateway", "scoring-worker", 8083),
    ("gateway", "export", 8084),
    ("ingest", "agent-registry", 8081),
    ("scoring-worker", "agent-registry", 8081),
    ("scoring-worker", "ingest", 8082),
    ("gateway", "webhooks", 8086),
    ("scoring-worker", "webhooks", 8086),
    ("gateway", "console", 8087),
    ("console", "agent-registry", 8081),
    ("console", "ingest", 8082),
    ("console", "scoring-worker", 8083),
    ("console", "export", 8084),
    ("console", "webhooks", 8086),
    ("export", "agent-registry", 8081),
    ("export", "scoring-worker", 8083),
    ("export-worker", "agent-registry", 8081),
}
ON_POSTGRES = {"migrate", "agent-registry", "ingest", "scoring-worker", "export", "export-worker", "webhooks"}
ON_RABBITMQ = ON_POSTGRES - {"migrate"}
# The only roles with internet access, and their ports.
TO_THE_INTERNET = {"export": {443}, "export-worker": {443}, "webhooks": {80, 443, 8443}}

errors = []


def error(text):
    errors.append(text)


def pods(objects):
    """Labels and specification of every pod template, by the name of its owner."""
    found = {}
    for thing in objects:
        template = thing.get("spec", {}).get("template", {})
        if thing["kind"] in ("Deployment", "StatefulSet", "Job"):
            found[thing["metadata"]["name"]] = (template["metadata"]["labels"], template["spec"], thing["kind"])
    return found


def is_ours(labels):
    return labels.get("app.kubernetes.io/part-of") == "assay"


def check_pod(name, labels, spec, kind):
    """The restricted Pod Security Standard, and what the executable needs."""
    security = spec.get("securityContext", {})
    if not (security.get("runAsNonRoot") and security.get("runAsUser")):
        error(f"{name} may run as root")
    if security.get("seccompProfile", {}).get("type") != "RuntimeDefault":
        error(f"{name} has no seccomp profile")
    if spec.get("automountServiceAccountToken") is not False:
        error(f"{name} gets a token of its service account")
    if spec.get("enableServiceLinks") is not False:
        error(f"{name} gets variables of Services: those that begin with ASSAY_ would be unknown settings")
    for container in spec["containers"]:
        security = container.get("securityContext", {})
        if security.get("allowPrivilegeEscalation") is not False or not security.get("readOnlyRootFilesystem"):
            error(f"{name} may gain privileges, or write to its root")
        if security.get("capabilities", {}).get("drop") != ["ALL"]:
            error(f"{name} keeps capabilities")
        if "memory" not in container.get("resources", {}).get("limits", {}):
            error(f"{name} has no limit of memory")
        if ":" not in container["image"] and is_ours(labels) or container["image"].endswith(":latest"):
            error(f"{name} has an image without a version: {container['image']}")
        if is_ours(labels) and kind == "Deployment":
            for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
                if probe not in container:
                    error(f"{name} has no {probe}")
        check_files(name, spec, container)


def check_files(name, spec, container):
    """Every file that a variable names is mounted."""
    mounts = {mount["mountPath"]: mount["name"] for mount in container.get("volumeMounts", [])}
    volumes = {volume["name"]: volume for volume in spec.get("volumes", [])}
    for mount, volume in mounts.items():
        if volume not in volumes and not name.startswith(("postgres", "rabbitmq")):
            error(f"{name} mounts {volume} at {mount}, which is no volume")
    for variable in container.get("env", []):
        if variable["name"].startswith("ASSAY_") and variable["name"].endswith("_FILE"):
            folder, _, file = variable["value"].rpartition("/")
            volume = volumes.get(mounts.get(folder), {})
            keys = [item["path"] for source in volume.get("projected", {}).get("sources", []) for item in source["secret"]["items"]]
            if "projected" in volume and file not in keys or not volume:
                error(f"{name}: {variable['name']} names {variable['value']}, which is not mounted")


def check_service_secrets(objects, is_rotation):
    """While the service secret is changed every role that has it accepts a second one; otherwise none does."""
    first, second = "ASSAY_SECURITY__SERVICE_TOKEN_SECRET_FILE", "ASSAY_SECURITY__SERVICE_TOKEN_ACCEPTED_SECRET_FILE"
    for name, (_, spec, _) in pods(objects).items():
        variables = {variable["name"] for container in spec["containers"] for variable in container.get("env", [])}
        if (second in variables) != (is_rotation and first in variables):
            error(f"{name}: a second service secret is {'missing' if is_rotation else 'accepted, which no change of the secret needs'}")


def check_references(objects, secrets):
    """Secrets, settings and Services lead somewhere."""
    known = {thing["metadata"]["name"] for thing in secrets}
    known.add("assay-objects")  # by hand: it belongs to the bucket
    known.add("assay-postgres-ca")  # CloudNativePG's, or by hand: it belongs to the server
    settings = {thing["metadata"]["name"] for thing in objects if thing["kind"] == "ConfigMap"}
    for name, (_, spec, _) in pods(objects).items():
        for volume in spec.get("volumes", []):
            sources = volume.get("projected", {}).get("sources", [])
            wanted = {source["secret"]["name"] for source in sources} | {volume.get("secret", {}).get("secretName")}
            for secret in wanted - known - {None}:
                error(f"{name} needs the Secret {secret}, which does not exist")
        for container in spec["containers"]:
            for source in container.get("envFrom", []):
                if source["configMapRef"]["name"] not in settings:
                    error(f"{name} needs settings that are not there")
    for thing in objects:
        if thing["kind"] == "Service":
            selector = thing["spec"]["selector"]
            chosen = [name for name, (labels, _, _) in pods(objects).items() if selector.items() <= labels.items()]
            if chosen != [thing["metadata"]["name"]]:
                error(f"Service {thing['metadata']['name']} leads to {chosen}")


def mounted_secrets(spec):
    """The names of the Secrets of a pod, and its files of Secrets by their paths."""
    volumes = {volume["name"]: volume for volume in spec.get("volumes", [])}
    names, files = set(), {}
    for container in spec["containers"]:
        for mount in container.get("volumeMounts", []):
            volume = volumes.get(mount["name"], {})
            sources = [source["secret"] for source in volume.get("projected", {}).get("sources", [])]
            sources += [volume["secret"] | {"name": volume["secret"]["secretName"]}] if "secret" in volume else []
            for source in sources:
                names.add(source["name"])
                for item in source.get("items", []):
                    files[f"{mount['mountPath']}/{item['path']}"] = (source["name"], item["key"])
    return names, files


def check_authorities(objects, secrets):
    """A database's address names a certificate of an authority that the pods with the address have; no pod has its key."""
    for name, (labels, spec, _) in pods(objects).items():
        names, files = mounted_secrets(spec)
        if ("assay-postgres-ca", "ca.key") in files.values():
            error(f"{name} has the private key of the authority of PostgreSQL")
        for secret in secrets:
            if not is_ours(labels) or secret["metadata"]["name"] not in names:
                continue
            for value in secret["stringData"].values():
                for path in re.findall("sslrootcert=(/[^&]+)", value):
                    if path not in files:
                        error(f"{name}: {secret['metadata']['name']} names {path}, which is not mounted")
    verified = ["sslmode=verify-full" in secret["stringData"]["url"] for secret in secrets if secret["metadata"]["name"].startswith("assay-database-")]
    if any(thing["kind"] == "Cluster" for thing in objects) and not (verified and all(verified)):
        error("an address of CloudNativePG's cluster does not verify it")


def selects(selector, labels):
    if not selector.get("matchLabels", {}).items() <= labels.items():
        return False
    for expression in selector.get("matchExpressions", []):
        if expression["operator"] != "In":
            raise ValueError(f"operator {expression['operator']} is not understood")
        if labels.get(expression["key"]) not in expression["values"]:
            return False
    return True


def is_open(policies, direction, one, other, port):
    """Whether `one` may connect to `other` (Egress) or be reached by it (Ingress). `other`: labels of a pod of this namespace, or an address."""
    chosen = [p["spec"] for p in policies if direction in p["spec"]["policyTypes"] and selects(p["spec"]["podSelector"], one)]
    if not chosen:
        return True
    side = "to" if direction == "Egress" else "from"
    for policy in chosen:
        for rule in policy.get(direction.lower(), []):
            if "ports" in rule and not any(entry["port"] <= port <= entry.get("endPort", entry["port"]) for entry in rule["ports"]):
                continue
            if any(peer_is(peer, other) for peer in rule.get(side, [])):
                return True
    return False


def peer_is(peer, other):
    if isinstance(other, dict):
        return "namespaceSelector" not in peer and "podSelector" in peer and selects(peer["podSelector"], other)
    block = peer.get("ipBlock")
    if not block:
        return False
    address = ipaddress.ip_address(other)
    inside = lambda network: address in ipaddress.ip_network(network)
    return inside(block["cidr"]) and not any(inside(hole) for hole in block.get("except", []))


def check_connections(objects):
    """Exactly the connections of `CALLS`, and those to the servers, are open between pods."""
    policies = [thing for thing in objects if thing["kind"] == "NetworkPolicy"]
    labels = {name: labels for name, (labels, _, _) in pods(objects).items()}
    # Pods that operators create.
    for thing in objects:
        if thing["kind"] == "Cluster":
            labels["postgres"] = {"cnpg.io/cluster": thing["metadata"]["name"]}
        if thing["kind"] == "RabbitmqCluster":
            labels["rabbitmq"] = {"app.kubernetes.io/name": thing["metadata"]["name"]}
    wanted = CALLS | {(role, "postgres", 5432) for role in ON_POSTGRES} | {(role, "rabbitmq", 5672) for role in ON_RABBITMQ}
    ports = {port for _, _, port in wanted} | {9464, 15672}
    ours = [name for name in labels if is_ours(labels[name])]
    for source in ours:
        for target in labels:
            for port in ports:
                both = is_open(policies, "Egress", labels[source], labels[target], port) and is_open(
                    policies, "Ingress", labels[target], labels[source], port
                )
                if both != ((source, target, port) in wanted):
                    error(f"{source} {'may' if both else 'may not'} talk to {target}:{port}")
        check_internet(policies, source, labels[source], any(t["kind"] == "Cluster" for t in objects))


def check_internet(policies, name, labels, has_bucket):
    wanted = TO_THE_INTERNET.get(name, set()) if has_bucket or name == "webhooks" else set()
    for port in (80, 443, 8443):
        for address in ("93.184.216.34", "2606:2800:220:1::1"):
            if is_open(policies, "Egress", labels, address, port) != (port in wanted):
                error(f"{name}: port {port} of the internet should {'' if port in wanted else 'not '}be open")
        for address in ("10.1.2.3", "169.254.169.254", "168.63.129.16", "192.168.1.1", "172.20.0.1", "127.0.0.1", "fd00::1", "fe80::1", "::1"):
            if is_open(policies, "Egress", labels, address, port):
                error(f"{name} may talk to the private address {address}")


def main():
    read = lambda path: [thing for thing in yaml.safe_load_all(open(path, encoding="utf-8")) if thing]
    objects, secrets = read(sys.argv[1]), read(sys.argv[2])
    for name, (labels, spec, kind) in pods(objects).items():
        check_pod(name, labels, spec, kind)
    check_references(objects, secrets)
    check_service_secrets(objects, sys.argv[3:] == ["rotation"])
    check_authorities(objects, secrets)
    check_connections(objects)
    if errors:
        sys.exit("\n".join(errors))
    json.dump([thing for thing in objects if thing["apiVersion"] not in CORE], sys.stdout)


main()
