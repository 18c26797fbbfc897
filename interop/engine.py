"""Dormouse engines as processes of their own, driven over HTTP."""

import json
import os
import re
import subprocess
import threading
import time
import urllib.error
import urllib.request

import protocol


class Engine:
    """``dormouse serve`` on free ports."""

    def __init__(self, launcher, *options):
        self._lines = []
        self._process = subprocess.Popen(
            [launcher, "serve", "--port", "0", "--side-channel-port", "0"]
            + ["--max-model-len", "512", "--kv-cache-memory", "64MiB", "--kv-lease-duration", "6"]
            + list(options),
            env=os.environ | {"VLLM_SERVER_DEV_MODE": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        threading.Thread(target=lambda: self._lines.extend(self._process.stdout), daemon=True).start()
        self._url = None

    def await_ready(self):
        """Waits until the engine says where it listens."""
        end = time.monotonic() + 300
        while self._url is None:
            for line in list(self._lines):
                found = re.match(r"Listening on (http://\S+)", line)
                self._url = found[1] if found else self._url
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError("engine did not start:\n" + "".join(self._lines[-20:]))
            time.sleep(0.1)

    def close(self):
        """Ends the process."""
        self._process.terminate()
        self._process.wait()

    def call(self, path, body=None, request_id=None, post=True):
        """Status and text of the answer."""
        headers = {"Content-Type": "application/json"}
        if request_id:
            headers["X-Request-Id"] = request_id
        data = json.dumps(body or {}).encode() if post else None
        request = urllib.request.Request(self._url + path, data, headers)
        try:
            with urllib.request.urlopen(request, timeout=180) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def complete(self, prompt, params=None, request_id=None, max_tokens=12):
        """The text, or the error's message with its status in front."""
        body = {"prompt": prompt, "max_tokens": max_tokens, "temperature": 0}
        if params is not None:
            body["kv_transfer_params"] = params
        status, text = self.call("/v1/completions", body, request_id)
        answer = json.loads(text)
        if status == 200:
            return answer["choices"][0]["text"]
        return f"{status} {answer['error']['code']} {answer['error']['message']}"

    def prefill(self, prompt, request_id=None):
        """The parameters with which another engine gets at the prompt's KV."""
        body = {"prompt": prompt, "max_tokens": 1, "kv_transfer_params": protocol.PREFILL}
        return json.loads(self.call("/v1/completions", body, request_id)[1])["kv_transfer_params"]

    def metric(self, name):
        """The value of a series, 0 if it is not there."""
        text = self.call("/metrics", post=False)[1]
        found = re.findall(rf"^{re.escape(name)}(?:{{[^}}]*}})? (\S+)$", text, re.MULTILINE)
        return sum(map(float, found))

    def is_idle(self):
        """True if no request is there, and no block is held."""
        return not any(
            self.metric("vllm:" + name)
            for name in ("kv_cache_usage_perc", "num_requests_running", "num_requests_waiting")
        )
