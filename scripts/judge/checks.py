"""Checks of the judge that hold for any model. Usage: checks.py ASSAY RECORDER KEY FOLDER

Every case starts a standalone with other settings, evaluates a few conversations, and compares the evaluations with
the recorded exchanges and with Assay's evaluations without a judge.
"""

import json
import os
import pathlib
import subprocess
import sys
import time
import urllib.error
import urllib.request

ASSAY, RECORDER, KEY, FOLDER = sys.argv[1], sys.argv[2], sys.argv[3], pathlib.Path(sys.argv[4])
EXCHANGES = FOLDER / "exchanges"
EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
CONVERSATIONS = [json.loads(line) for line in open(EXAMPLES / "conversations.jsonl", encoding="utf-8")]
MODEL = "smollm2-135m"
# Fallback reasons of a model that is too weak.
POOR_ANSWERS = ("unusable_answer", "unsupported_quotes")


def settings(**changed):
    known = {
        "URL": f"{RECORDER}/v1",
        "MODEL": MODEL,
        "KEY": KEY,
        "TIMEOUT_MILLISECONDS": "600000",
        "CONCURRENCY": "1",
        "ATTEMPTS": "1",
        "MAX_ANSWER_TOKENS": "900",
        "PROMPT_USD_PER_MILLION_TOKENS": "1",
        "COMPLETION_USD_PER_MILLION_TOKENS": "4",
    } | changed
    return os.environ | {f"ASSAY_SCORING__JUDGE__{name}": value for name, value in known.items()}


def call(method, url, body=None):
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url, data, headers, method=method)) as response:
        return json.loads(response.read())


class Standalone:
    def __init__(self, name, environment):
        folder = FOLDER / name
        folder.mkdir()
        command = [ASSAY, "standalone", "--listen", "127.0.0.1:0", "--data-dir", str(folder / "data")]
        environment = environment | {"ASSAY_BOOTSTRAP_API_KEY": KEY}
        self.out, self.log = folder / "out", folder / "log"
        with open(self.out, "w") as out, open(self.log, "w") as log:
            self.process = subprocess.Popen(command, env=environment, stdout=out, stderr=log)

    def __enter__(self):
        for _ in range(300):
            lines = [line for line in self.out.read_text().splitlines() if line.startswith("assay listens on ")]
            try:
                if lines:
                    self.address = lines[0].removeprefix("assay listens on ").strip()
                    call("GET", f"{self.address}/readyz")
                    return self
            except urllib.error.URLError:
                pass
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        raise SystemExit(f"the standalone does not start:\n{self.log.read_text()[-3000:]}")

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def evaluate(self, conversations):
        agents = [json.loads(line) for line in open(EXAMPLES / "agents.jsonl", encoding="utf-8")]
        for agent in agents:
            call("POST", f"{self.address}/v1/agents", agent)
        return [self.evaluation(conversation) for conversation in conversations]

    def evaluation(self, conversation):
        receipt = call("POST", f"{self.address}/v1/assess", conversation)
        for _ in range(12000):
            answer = call("GET", f"{self.address}/v1/tickets/{receipt['id']}/evaluation")
            if answer["status"] != "pending":
                return answer
            time.sleep(0.05)
        raise SystemExit("there is no evaluation")


def exchanges():
    if not EXCHANGES.exists():
        return []
    return [json.loads(line) for line in open(EXCHANGES, encoding="utf-8")]


def run(name, conversations, **changed):
    """The evaluations of a case, and their recorded exchanges."""
    print(f"\n== {name}", flush=True)
    before = len(exchanges())
    with Standalone(name, settings(**changed)) as standalone:
        evaluations = standalone.evaluate(conversations)
    attempts = sum(evaluation["scorer"]["judge"]["attempts"] for evaluation in evaluations)
    is_recorded = changed.get("URL", RECORDER).startswith(RECORDER)
    # Exchanges that Assay has abandoned are recorded later.
    while is_recorded and len(exchanges()) < before + attempts:
        time.sleep(0.1)
    said = exchanges()[before:]
    for evaluation in evaluations:
        describe(evaluation)
    return evaluations, said


def describe(evaluation):
    scorer, judge = evaluation["scorer"], evaluation["scorer"].get("judge", {})
    print(f"  {evaluation['external_ticket_id']} {scorer['type']} {judge}")
    if scorer["type"] == "judge":
        scores = {name: each["score"] for name, each in evaluation["axis"]["dimensions"].items()}
        resolution, charge = evaluation["resolution"], evaluation["charge"]["assessment"]
        print(f"    {scores} {resolution['status']} by {resolution['resolved_by']}, charge {charge}, {evaluation['flags']}")
        print(f"    {resolution['reason']}")


def text(exchange):
    return exchange["answered"]["choices"][0]["message"]["content"]


def check(holds, what):
    print(f"  {'ok  ' if holds else 'FAIL'} {what}", flush=True)
    if not holds:
        raise SystemExit(1)


def counted(evaluation, said):
    """The request counts of an evaluation match the recorded ones."""
    judge = evaluation["scorer"]["judge"]
    usage = [exchange["answered"]["usage"] for exchange in said]
    prompt, completion = (sum(each[f"{kind}_tokens"] for each in usage) for kind in ("prompt", "completion"))
    same = (judge["prompt_tokens"], judge["completion_tokens"], judge["attempts"]) == (prompt, completion, len(said))
    return same and abs(judge["cost_usd"] - (prompt + 4 * completion) / 1e6) < 2e-6


def by_case(said):
    """The exchanges of each conversation, in order."""
    cases = {}
    for exchange in said:
        case = exchange["asked"]["messages"][1]["content"].split("<<<CONVERSATION ")[1].split(">>>")[0]
        cases.setdefault(case, []).append(exchange)
    return cases


def builtin(conversations):
    file = FOLDER / "conversations.jsonl"
    file.write_text("".join(json.dumps(conversation) + "\n" for conversation in conversations))
    output = subprocess.run([ASSAY, "score", str(file)], check=True, capture_output=True, text=True).stdout
    return {each["external_ticket_id"]: each for each in map(json.loads, output.splitlines())}


def stands_in(evaluation, own):
    return all(evaluation[part] == own[part] for part in ("axis", "resolution", "charge", "flags", "evidence"))


def free_answers(own):
    """The model in JSON mode, without a grammar."""
    evaluations, said = run("as it is", CONVERSATIONS[:3])
    check(all(each["asked"]["response_format"] == {"type": "json_object"} for each in said), "JSON mode is asked for")
    check(all(each["status"] == 200 for each in said), "and the server takes it")
    whole = [each for each in said if each["answered"]["choices"][0]["finish_reason"] == "stop"]
    check(all(isinstance(json.loads(text(each)), (dict, list)) for each in whole), "what ends is JSON")
    for evaluation, (case, asked) in zip(evaluations, by_case(said).items()):
        ticket = evaluation["external_ticket_id"]
        for exchange in asked:
            print(f"  {ticket} answered in {exchange['seconds']} s: {text(exchange)[:400]!r}")
        check(evaluation["transcript_sha256"].startswith(case), f"{ticket}: its own case number was sent")
        check(counted(evaluation, asked), f"{ticket}: tokens, requests and cost are those of the server")
        if evaluation["scorer"]["type"] == "fallback":
            check(evaluation["scorer"]["judge"]["fallback_reason"] in POOR_ANSWERS, f"{ticket}: says why it fell back")
            check(len(asked) == 2, f"{ticket}: the model got one repair request")
            check(stands_in(evaluation, own[ticket]), f"{ticket}: the built-in evaluation stands in")


def formed_answers(own):
    """The model with a grammar of the answer: its answers are used."""
    evaluations, said = run("grammar", CONVERSATIONS[:3], URL=f"{RECORDER}/grammar/v1")
    for evaluation, asked in zip(evaluations, by_case(said).values()):
        ticket, answer = evaluation["external_ticket_id"], text(asked[-1])
        print(f"  {ticket} answered in {asked[-1]['seconds']} s: {answer[:1500]}")
        check(evaluation["scorer"]["type"] == "judge", f"{ticket}: its answer is used")
        check(counted(evaluation, asked), f"{ticket}: tokens, requests and cost are those of the server")
        found, dimensions = json.loads(answer), evaluation["axis"]["dimensions"]
        same = all(each["score"] == found[name]["score"] for name, each in dimensions.items())
        check(same, f"{ticket}: all three scores are the model's")
        resolution = evaluation["resolution"]
        check(resolution["status"] == found["resolution"]["status"], f"{ticket}: so is the status")
        mean = sum(each["score"] for each in dimensions.values()) / 3
        check(abs(evaluation["axis"]["score"] - mean) < 0.051, f"{ticket}: AXIS is their mean")
        before = own[ticket]
        same = (resolution["status"], resolution["resolved_by"], evaluation["charge"]["assessment"]) == (
            before["resolution"]["status"], before["resolution"]["resolved_by"], before["charge"]["assessment"],
        )
        check(same or "JUDGE_DISAGREES" in evaluation["flags"], f"{ticket}: what the two differ on is shown")


def failures(own):
    """Answers that are cut, late, refused, or missing."""
    one = CONVERSATIONS[:1]

    def falls_back(name, reasons, **changed):
        (evaluation,), said = run(name, one, **changed)
        reason = evaluation["scorer"]["judge"]["fallback_reason"]
        check(reason in reasons, f"falls back as {' or '.join(reasons)}: {reason}")
        check(stands_in(evaluation, own[evaluation["external_ticket_id"]]), "the built-in evaluation stands in")
        return evaluation, said

    _, said = falls_back("cut off", ["unusable_answer"], MAX_ANSWER_TOKENS="64")
    reasons = [each["answered"]["choices"][0]["finish_reason"] for each in said]
    check(reasons == ["length", "length"], "the server says that both answers were cut")
    check("ends before it is complete" in said[1]["asked"]["messages"][3]["content"], "the repair request names the error")
    evaluation, _ = falls_back("too late", ["timeout"], TIMEOUT_MILLISECONDS="300")
    judge = evaluation["scorer"]["judge"]
    check(300 <= judge["latency_ms"] < 2000, f"after {judge['latency_ms']} ms")
    check(judge["cost_usd"] > 0, "and its request counts as paid")
    _, said = falls_back("wrong key", ["refused"], KEY="wrong")
    check([each["status"] for each in said] == [401], "the server said so, and was not asked again")
    falls_back("unreachable endpoint", ["unavailable"], URL="http://127.0.0.1:9/v1")


def trial():
    print("\n== assay judge test")
    cases = [
        ({}, "model"),
        ({"KEY": "wrong"}, "refuses the key (status 401)"),
        ({"TIMEOUT_MILLISECONDS": "100"}, "no usable answer within 100 ms"),
        ({"POLICY": "veto"}, 'must be "advise" or "decide"'),
    ]
    for changed, words in cases:
        tried = subprocess.run([ASSAY, "judge", "test"], env=settings(**changed), capture_output=True, text=True)
        said = (tried.stdout + tried.stderr).strip()
        print(f"  {changed}: {said}")
        check(tried.returncode in (0, 1) and words in said, "explains the result")


own = builtin(CONVERSATIONS[:3])
free_answers(own)
formed_answers(own)
failures(own)
trial()
print("\nthe protocol holds")
