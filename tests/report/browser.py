"""A headless Chromium, spoken to over its debugging pipe; nothing but the standard library is needed."""
import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

PROGRAMS = "chromium", "chromium-browser", "google-chrome"


def find():
    return next((path for path in map(shutil.which, PROGRAMS) if path), None)


class Browser:
    def __init__(self):
        self.home = tempfile.mkdtemp()
        to_child, self.write_fd = os.pipe()
        self.read_fd, from_child = os.pipe()

        def put_pipes():  # Chromium reads commands from 3 and writes answers to 4
            os.dup2(to_child, 13)
            os.dup2(from_child, 14)
            os.dup2(13, 3)
            os.dup2(14, 4)

        self.process = subprocess.Popen(
            [find(), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe",
             f"--user-data-dir={self.home}", "about:blank"],
            close_fds=False, preexec_fn=put_pipes, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_child)
        os.close(from_child)
        self.buffer, self.events, self.number, self.session = b"", [], 0, None

    def close(self):
        try:
            self.send("Browser.close")
            self.process.wait(20)
        except (OSError, TimeoutError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.home, ignore_errors=True)

    def receive(self, deadline):
        while b"\0" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.read_fd], [], [], left)[0]:
                raise TimeoutError("the browser is silent")
            more = os.read(self.read_fd, 1 << 20)
            if not more:
                raise OSError("the browser is gone")
            self.buffer += more
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def send(self, method, seconds=120, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write_fd, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + seconds
        while True:
            answer = self.receive(deadline)
            if answer.get("id") == self.number:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def open(self, path, script=True):
        """A fresh tab with the file loaded."""
        self.session = None
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.events = []
        for domain in "Page", "Runtime", "Log", "Network":
            self.send(domain + ".enable")
        self.send("Emulation.setScriptExecutionDisabled", value=not script)
        self.send("Page.navigate", url=pathlib.Path(path).resolve().as_uri())
        deadline = time.monotonic() + 120
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self.receive(deadline))

    def run(self, script):
        """The value of an expression in the page."""
        result = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def complaints(self):
        """Errors and warnings of the console, and requests for anything but the page itself."""
        found = []
        for event in self.events:
            method, params = event.get("method"), event.get("params", {})
            if method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                found.append(params["entry"]["text"])
            if method == "Runtime.exceptionThrown":
                found.append(params["exceptionDetails"]["text"])
            if method == "Runtime.consoleAPICalled":
                found.append(str(params["args"]))
            if method == "Network.requestWillBeSent" and params["request"]["url"] != params["documentURL"]:
                found.append("request: " + params["request"]["url"])
        return found

    def view(self, width, height, scheme="light", media="screen"):
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.send("Emulation.setEmulatedMedia", media=media,
                  features=[{"name": "prefers-color-scheme", "value": scheme}])

    def picture(self, path, whole=False):
        clip = {}
        if whole:  # as large as the page is now, whatever it was before
            width, height = self.run("[document.documentElement.clientWidth, document.documentElement.scrollHeight]")
            clip = {"clip": {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}}
        data = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole, optimizeForSpeed=True,
                         **clip)["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))
