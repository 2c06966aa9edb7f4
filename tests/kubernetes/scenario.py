"""Imports through the gateway's Service while workers are scaled, pods deleted and a new image rolled out.

Passes when no import failed beyond its retries, when an export has every accepted conversation exactly once, and when the console
lists conversations after a sign-in. Run by scripts/kubernetes-e2e.sh inside of the cluster's network.
"""

import argparse
import csv
import http.client
import io
import itertools
import json
import pathlib
import random
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

NAMESPACE = "assay"
ROLES = ["gateway", "agent-registry", "ingest", "scoring-worker", "export", "export-worker", "webhooks", "console"]
SERVERS = ["postgres", "rabbitmq"]
# Imports a second, and the seconds that one is tried again before it counts as failed.
RATE, RETRY_SECONDS = 5, 180
DELETED_PODS, SECONDS_BETWEEN_DELETIONS = 12, 6
RETRIED_STATUSES = {429, 502, 503, 504}


def kubectl(*arguments):
    return subprocess.run(["kubectl", "--namespace", NAMESPACE, *arguments], check=True, capture_output=True, text=True).stdout


class Client:
    def __init__(self, url, key):
        self.url, self.key = url, key

    def call(self, path, body=None):
        """Status and body. No answer, or a part of one, is status 0."""
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, body, headers)
        try:
            try:
                response = urllib.request.urlopen(request, timeout=20)
            except urllib.error.HTTPError as error:
                response = error
            with response:
                return response.status, response.read()
        except (OSError, http.client.HTTPException) as error:
            return 0, str(error).encode()

    def retry(self, path, body=None, accepted=(200, 201, 202)):
        """The first answer that is not a failure of the moment, and the number of attempts."""
        end = time.monotonic() + RETRY_SECONDS
        for attempt in itertools.count(1):
            status, answer = self.call(path, body)
            if status in accepted:
                return answer, attempt
            if status not in RETRIED_STATUSES | {0} or time.monotonic() > end:
                raise RuntimeError(f"{path}: {status} after {attempt} attempts: {answer[:300]!r}")
            time.sleep(0.5)


class Importer:
    """Imports at a constant rate until it is stopped."""

    def __init__(self, client, conversations):
        self.client, self.conversations = client, conversations
        self.accepted, self.failed, self.retried = [], [], 0
        self.stopped, self.lock, self.threads = threading.Event(), threading.Lock(), []
        self.clock = threading.Thread(target=self.run)
        self.clock.start()

    def run(self):
        start = time.monotonic()
        for number in itertools.count():
            if self.stopped.wait(max(0.0, start + number / RATE - time.monotonic())):
                return
            thread = threading.Thread(target=self.import_one, args=(number,))
            thread.start()
            self.threads.append(thread)

    def import_one(self, number):
        conversation = json.loads(self.conversations[number % len(self.conversations)])
        conversation["ticket_id"] = f"{conversation['ticket_id']}-{number}"
        # 409: an earlier attempt was stored, and its answer was lost.
        try:
            _, attempts = self.client.retry("/v1/assess", json.dumps(conversation).encode(), (202, 409))
        except Exception as error:  # An import that is in neither list would not be missed.
            with self.lock:
                self.failed.append(f"{type(error).__name__}: {error}")
            return
        with self.lock:
            self.accepted.append(conversation["ticket_id"])
            self.retried += attempts > 1

    def stop(self):
        self.stopped.set()
        self.clock.join()
        for thread in self.threads:
            thread.join()
        ended = len(self.accepted) + len(self.failed)
        assert ended == len(self.threads), f"{ended} of {len(self.threads)} imports have ended"


def await_rollouts():
    for role in ROLES:
        kubectl("rollout", "status", f"deployment/{role}", "--timeout=5m")
    for server in SERVERS:
        kubectl("rollout", "status", f"statefulset/{server}", "--timeout=5m")


def scale_workers():
    kubectl("scale", "deployment/scoring-worker", "--replicas=3")
    await_rollouts()
    pods = json.loads(kubectl("get", "pods", "--selector=app.kubernetes.io/component=scoring-worker", "--output=json"))["items"]
    assert len(pods) == 3, f"{len(pods)} scoring-workers"


def running_pods():
    """Name, role or server, and image of each pod that runs and is not being deleted."""
    pods = json.loads(kubectl("get", "pods", "--field-selector=status.phase=Running", "--output=json"))["items"]
    kept = [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]
    return [(pod["metadata"]["name"], kind_of(pod["metadata"]["labels"]), pod["spec"]["containers"][0]["image"]) for pod in kept]


def kind_of(labels):
    return labels.get("app.kubernetes.io/component") or labels["app.kubernetes.io/name"]


def delete_pods():
    """Deletes a pod of every role and server, then others by chance. Every other one has no grace period, as if its node was lost.
    PostgreSQL and RabbitMQ always have theirs: Kubernetes would start another server on the same files while the first one
    still runs.
    """
    chance = random.Random(1)
    kinds = chance.sample(ROLES + SERVERS, len(ROLES + SERVERS))
    kinds += chance.choices(ROLES + SERVERS, k=DELETED_PODS - len(kinds))
    for number, kind in enumerate(kinds):
        pod = pod_of(kind, chance)
        how = ["--grace-period=0", "--force"] if number % 2 and kind not in SERVERS else []
        print(f"  delete {pod} {' '.join(how)}", flush=True)
        kubectl("delete", "pod", pod, "--wait=false", "--ignore-not-found", *how)
        time.sleep(SECONDS_BETWEEN_DELETIONS)
    await_rollouts()


def pod_of(kind, chance):
    """A running pod of a role or server. Waits for one: an earlier deletion may have left none."""
    end = time.monotonic() + 120
    while True:
        names = sorted(name for name, other, _ in running_pods() if other == kind)
        if names:
            return chance.choice(names)
        assert time.monotonic() < end, f"no pod of {kind} is running"
        time.sleep(1)


def roll_image(image):
    for role in ROLES:
        kubectl("set", "image", f"deployment/{role}", f"assay={image}")
    await_rollouts()
    # A pod of the old image may still run for the moment before its deletion.
    end = time.monotonic() + 30
    while True:
        images = {(kind, used) for _, kind, used in running_pods() if kind in ROLES}
        if images == {(role, image) for role in ROLES}:
            return
        assert time.monotonic() < end, images
        time.sleep(1)


def exported(client):
    """The external ids of an export of everything that is evaluated."""
    job = json.loads(client.retry("/v1/evaluations/exports", b'{"kind":"axis"}')[0])["id"]
    end = time.monotonic() + 300
    while True:
        state = json.loads(client.retry(f"/v1/evaluations/exports/{job}")[0])
        if state["status"] == "complete":
            assert state["evaluations_complete"] is True, state
            break
        assert state["status"] != "failed" and time.monotonic() < end, state
        time.sleep(1)
    file, _ = client.retry(f"/v1/evaluations/exports/{job}/download")
    return [row["external_ticket_id"] for row in csv.DictReader(io.StringIO(file.decode("utf-8-sig"), newline=""))]


def export_of_all(client, accepted):
    """The external ids of an export with all accepted conversations; of the last export if that does not come in two minutes.
    An export has the evaluations made before it was created, and the last conversations may still wait for theirs.
    """
    end = time.monotonic() + 120
    while True:
        rows = exported(client)
        if set(accepted) <= set(rows) or time.monotonic() > end:
            return rows
        time.sleep(2)


def check_console(client):
    """Signs in by a one-time address, as a browser does for a person who typed it, and opens the list of conversations."""
    link = kubectl("exec", "deployment/agent-registry", "--", "/usr/local/bin/assay", "console", "link", "--organization", "acme",
                   "--url", client.url).split()[0]
    status, cookie, answer = open_page(client, link.removeprefix(client.url), {"Sec-Fetch-Site": "none"})
    assert status == 303 and cookie.startswith("assay-session="), f"signing in was answered {status}: {answer[:300]}"
    status, _, page = open_page(client, "/console/conversations", {"Cookie": cookie})
    assert status == 200 and "Rows 1–25 of " in page, f"the list was answered {status}: {page[:300]}"
    print("console: signed in, and the conversations are listed", flush=True)


def open_page(client, path, headers):
    """Status, cookie and text of a page; no redirect is followed."""
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(client.url).netloc, timeout=20)
    try:
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        return response.status, (response.getheader("Set-Cookie") or "").split(";")[0], response.read().decode()
    finally:
        connection.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--examples", required=True, type=pathlib.Path, help="folder with agents.jsonl and conversations.jsonl")
    parser.add_argument("--image", required=True, help="the image that is rolled out")
    arguments = parser.parse_args()
    await_rollouts()
    key = kubectl("exec", "deployment/agent-registry", "--", "/usr/local/bin/assay", "keys", "create", "--organization", "acme")
    client = Client(arguments.url, key.split()[0])
    for agent in (arguments.examples / "agents.jsonl").read_text().splitlines():
        client.retry("/v1/agents", agent.encode())
    importer = Importer(client, (arguments.examples / "conversations.jsonl").read_text().splitlines())
    try:
        for name, phase in [
            ("no fault", lambda: time.sleep(15)),
            ("three scoring-workers", scale_workers),
            (f"{DELETED_PODS} pods deleted", delete_pods),
            ("new image", lambda: roll_image(arguments.image)),
        ]:
            start, before = time.monotonic(), len(importer.accepted)
            phase()
            assert importer.clock.is_alive() and len(importer.accepted) > before, f"no import was accepted during: {name}"
            print(f"{name}: {time.monotonic() - start:.0f} s, {len(importer.accepted)} accepted, {importer.retried} retried,"
                  f" {len(importer.failed)} failed", *importer.failed[-1:], flush=True)
    finally:
        importer.stop()
    rows = export_of_all(client, importer.accepted)
    lost = set(importer.accepted) - set(rows)
    print(f"{len(importer.accepted)} accepted, {importer.retried} of them after retries, {len(importer.failed)} failed;"
          f" {len(rows)} rows exported, {len(lost)} lost, {len(rows) - len(set(rows))} doubled,"
          f" {len(set(rows) - set(importer.accepted))} never accepted", flush=True)
    assert not importer.failed, importer.failed[:3]
    assert sorted(rows) == sorted(importer.accepted), sorted(lost)[:10]
    check_console(client)


if __name__ == "__main__":
    main()
