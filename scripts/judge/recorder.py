"""Recording proxy between Assay and a chat completions server: one line of JSON per exchange.

Requests below /v1 are forwarded unchanged. Below /grammar/v1 a schema is added, which the server turns into a grammar: then
even the smallest model writes an answer of the right form.

Usage: recorder.py UPSTREAM FILE      (prints its port)
"""

import json
import sys
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

UPSTREAM, FILE = sys.argv[1], sys.argv[2]
BASES = {
    "resolved": ["action_completed", "answer_given"],
    "partial": ["silence_only", "answer_given", "action_completed", "escalated"],
    "not_resolved": ["customer_rejected", "escalated", "no_answer"],
}
WRITING = threading.Lock()


def constant(value):
    return {"type": type(value).__name__.replace("str", "string").replace("int", "integer"), "enum": [value]}


def members(**properties):
    return {"type": "object", "properties": properties, "required": list(properties)}


def schema(question):
    """Schema of an answer: its case, whole messages as quotes, scores in halves, bases that match the status."""
    case = question.split("<<<CONVERSATION ")[1].split(">>>")[0]
    conversation = json.loads(next(line for line in question.splitlines() if line.startswith("{")))
    quoted = [
        members(message=constant(message["number"]), quote=constant(message["text"]))
        for message in conversation["messages"]
        if message["from"] in ("customer", "ai", "human")
        and message["seen_by_customer"]
        and not message.get("talks_to_evaluator")
        and len(message["text"]) <= 200
    ]
    words = {
        "reason": {"type": "string", "minLength": 10, "maxLength": 120},
        "quotes": {"type": "array", "items": {"anyOf": quoted}, "minItems": 1, "maxItems": 1},
    }
    score = members(score={"enum": [half / 2 for half in range(2, 11)]}, **words)
    resolutions = [
        members(
            status=constant(status),
            basis={"enum": bases},
            resolved_by={"enum": ["none"] if status == "not_resolved" else ["ai", "human", "customer", "unknown"]},
            charge={"enum": ["supported", "review", "disputed"]},
            **words,
        )
        for status, bases in BASES.items()
    ]
    return members(
        case=constant(case),
        resolution_accuracy=score,
        interaction_effort=score,
        handoff_smoothness=score,
        resolution={"anyOf": resolutions},
    )


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        asked = json.loads(json.dumps(body))
        path = self.path
        if path.startswith("/grammar/"):
            path = path.removeprefix("/grammar")
            body["response_format"]["schema"] = schema(body["messages"][1]["content"])
        headers = {"Content-Type": "application/json", "Authorization": self.headers.get("Authorization", "")}
        request = urllib.request.Request(UPSTREAM + path, json.dumps(body).encode(), headers)
        began = time.monotonic()
        try:
            with urllib.request.urlopen(request) as response:
                status, answer = response.status, response.read()
        except urllib.error.HTTPError as error:
            status, answer = error.code, error.read()
        exchange = {
            "path": self.path,
            "seconds": round(time.monotonic() - began, 2),
            "asked": asked,
            "status": status,
            "answered": json.loads(answer),
        }
        with WRITING, open(FILE, "a", encoding="utf-8") as file:
            file.write(json.dumps(exchange) + "\n")
        try:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)
        except (BrokenPipeError, ConnectionResetError):
            pass  # Assay has timed out.


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
