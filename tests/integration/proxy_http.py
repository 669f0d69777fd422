"""What gannet-proxy shows with --http, for proxy_test.py, which sets url, port, address (of
the server), lose() and find() (the server)."""

import pathlib
import re
import socket
import subprocess
import time
import unittest
import urllib.error
import urllib.request

import redis

LIMIT_S = 60
RULES = pathlib.Path(__file__).resolve().parents[2] / "packaging/prometheus/gannet.rules.yml"


def get(url):
    """Returns the status and the text of an answer."""
    try:
        with urllib.request.urlopen(url, timeout=LIMIT_S) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def metrics(url):
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2])
            for line in get(url + "/metrics")[1].split("\n") if line and not line.startswith("#")}


class Http(unittest.TestCase):
    def setUp(self):
        self.client = redis.Redis(port=self.port, retry_on_timeout=False)
        self.addCleanup(self.client.close)

    def await_status(self, path, status):
        give_up = time.monotonic() + LIMIT_S
        while True:
            got, text = get(self.url + path)
            if got == status or time.monotonic() > give_up:
                self.assertEqual(got, status, text)
                return text
            time.sleep(0.01)

    def test_metrics_count_what_was_done(self):
        before = metrics(self.url)
        self.client.set("a", "1")
        self.assertEqual(self.client.mget("a", "none"), [b"1", None])
        with self.assertRaises(redis.ResponseError):
            self.client.incr("a", "x")
        with socket.create_connection(("127.0.0.1", self.port)) as raw:
            raw.settimeout(LIMIT_S)
            raw.sendall(b"get a\r\nnonsense\r\nmn\r\n")
            said = b""
            while not said.endswith(b"MN\r\n"):
                said += raw.recv(100)
            after = metrics(self.url)
        changed = {name: after[name] - before[name] for name in after}
        self.assertEqual(changed['gannet_proxy_gets_total{result="hit"}'], 2)
        self.assertEqual(changed['gannet_proxy_gets_total{result="miss"}'], 1)
        self.assertEqual(changed["gannet_proxy_sets_total"], 1)
        self.assertEqual(changed["gannet_proxy_error_replies_total"], 2)
        self.assertGreaterEqual(changed['gannet_proxy_commands_total{protocol="redis"}'], 3)
        self.assertEqual(changed['gannet_proxy_commands_total{protocol="memcached"}'], 3)
        self.assertEqual(after["gannet_proxy_connections"], 2)
        self.assertGreater(after["gannet_proxy_buffer_bytes"], 0)
        self.assertGreater(after["gannet_proxy_buffer_max_bytes"], after["gannet_proxy_buffer_bytes"])
        self.assertEqual(after[f'gannet_proxy_server_up{{server="{self.address}"}}'], 1)

    def test_promtool_finds_no_fault_and_alerts_know_the_names(self):
        status, text = get(self.url + "/metrics")
        self.assertEqual(status, 200)
        checked = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True,
                                 timeout=LIMIT_S, check=False)
        self.assertEqual((checked.returncode, checked.stderr), (0, ""))
        asked = set(re.findall(r"\bgannet_proxy_\w+", RULES.read_text(encoding="utf-8")))
        self.assertTrue(asked)
        self.assertEqual(asked - {name.partition("{")[0] for name in metrics(self.url)}, set())

    def test_it_is_healthy_and_not_ready_while_no_server_is_there(self):
        self.assertEqual(get(self.url + "/healthz"), (200, "ok\n"))
        self.assertEqual(get(self.url + "/readyz"), (200, "ready\n"))
        self.lose()
        why = self.await_status("/readyz", 503)
        self.assertRegex(why, f"no server can be reached: {self.address}: .")
        self.assertEqual(get(self.url + "/healthz"), (200, "ok\n"))
        with self.assertRaises(redis.ResponseError):
            self.client.get("a")
        after = metrics(self.url)
        self.assertEqual(after[f'gannet_proxy_server_up{{server="{self.address}"}}'], 0)
        failed = sum(value for name, value in after.items() if name.startswith("gannet_proxy_store_errors_total"))
        self.assertGreaterEqual(failed, 1)
        self.find()
        self.await_status("/readyz", 200)

    def test_it_has_no_other_pages(self):
        self.assertEqual(get(self.url + "/")[0], 404)
