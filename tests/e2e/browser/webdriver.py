# SPDX-License-Identifier: Apache-2.0
"""As much of the WebDriver protocol (W3C) as the browser test needs."""
import base64
import json
import shutil
import subprocess
import time
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


class WebDriver:
    def __init__(self, scratch):
        program = shutil.which("chromedriver")
        browser = shutil.which("chromium")
        if not program or not browser:
            raise SystemExit("browser: no chromium or chromedriver; "
                             "scripts/bootstrap --check installs them")
        self.process = subprocess.Popen(
            [program, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for line in self.process.stdout:
            if "started successfully on port" in line:
                self.base = "http://127.0.0.1:" + line.split("port")[1].strip(" .\n")
                break
        capabilities = {
            "browserName": "chrome",
            "goog:loggingPrefs": {"browser": "ALL"},
            "goog:chromeOptions": {
                "binary": browser,
                "args": ["--headless=new", "--no-sandbox", "--disable-gpu",
                         "--disable-dev-shm-usage", "--force-prefers-reduced-motion",
                         "--lang=en", f"--user-data-dir={scratch}"]}}
        self.session = ""
        answer = self.call("POST", "/session",
                           {"capabilities": {"alwaysMatch": capabilities}})
        self.session = "/session/" + answer["sessionId"]

    def call(self, method, path, body=None):
        request = urllib.request.Request(
            self.base + self.session + path, method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=120) as response:
                return json.load(response)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{method} {path}: {error.read().decode()[:500]}") from error

    def open(self, url):
        self.call("POST", "/url", {"url": url})

    def script(self, code, *args):
        return self.call("POST", "/execute/sync", {"script": code, "args": list(args)})

    def find(self, css):
        return self.call("POST", "/element", {"using": "css selector", "value": css})[ELEMENT]

    def click(self, css):
        self.call("POST", f"/element/{self.find(css)}/click", {})

    def keys(self, css, text):
        self.call("POST", f"/element/{self.find(css)}/value", {"text": text})

    def text(self, css):
        return self.script("const n = document.querySelectorAll(arguments[0]);"
                           "return n.length ? n[n.length - 1].textContent : ''", css)

    def wait(self, what, condition, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            value = condition()
            if value:
                return value
            time.sleep(0.02)
        raise AssertionError(f"did not happen in {seconds} s: {what}")

    def size(self, width, height):
        # The window of headless chromium is no smaller than 500; this is what a
        # page sees.
        self.call("POST", "/goog/cdp/execute", {
            "cmd": "Emulation.setDeviceMetricsOverride",
            "params": {"width": width, "height": height, "deviceScaleFactor": 1,
                       "mobile": width < 600}})

    def prefer(self, scheme):
        self.call("POST", "/goog/cdp/execute", {
            "cmd": "Emulation.setEmulatedMedia",
            "params": {"features": [{"name": "prefers-color-scheme", "value": scheme}]}})

    def screenshot(self, path):
        with open(path, "wb") as image:
            image.write(base64.b64decode(self.call("GET", "/screenshot")))

    def console(self):
        return self.call("POST", "/se/log", {"type": "browser"})

    def quit(self):
        try:
            if self.session:
                self.call("DELETE", "")
        finally:
            self.process.terminate()
            self.process.wait()
