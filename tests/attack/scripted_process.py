"""A scripted model in a process of its own: the same prompt has the same answer, and each request is written down.

python -m tests.attack.scripted_process LOG SECONDS      prints its base URL

LOG gets `digest_of` a question a line, SECONDS before the answer.
"""

import hashlib
import json
import sys
import time

from swizzle_sim.language import family
from tests.agent.scripted_server import ScriptedServer, proposal

SPECS = ("group_m(size=2)", "group_m(size=4)", "column", "group_n(size=4)", "contiguous", "row", "group_m(size=8)")


def digest_of(question):
    """Name of a question by its words."""
    return hashlib.sha256(question.encode()).hexdigest()


class LoggedServer(ScriptedServer):
    """Answers by the digest of the messages."""

    def __init__(self, log, seconds):
        super().__init__(())
        self.log, self.seconds = log, seconds

    def next_reply(self, body, headers):
        digest = digest_of(body["messages"][-1]["content"])
        with self._lock, open(self.log, "a") as file:
            file.write(f"{digest}\n")
        time.sleep(self.seconds)
        if "locality_analysis" in json.dumps(body["messages"][0]):
            return self.analysis
        return proposal(family(SPECS[int(digest, 16) % len(SPECS)]))


if __name__ == "__main__":
    with LoggedServer(sys.argv[1], float(sys.argv[2])) as server:
        print(server.base, flush=True)
        sys.stdin.read()  # until whoever started it goes away
