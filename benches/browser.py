"""A browser without a window, which scripts here look at pages with. Needs chromedriver and chromium."""

import json
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path


class Browser:
    """A browser without a window, over the WebDriver protocol."""

    def __init__(self) -> None:
        driver, binary = shutil.which("chromedriver"), shutil.which("chromium")
        if not driver or not binary:
            sys.exit("error: there is no chromedriver and no chromium\nhint: Debian has them in chromium-driver")
        self.driver = subprocess.Popen([driver, "--port=0"], stdout=subprocess.PIPE, text=True)
        line = next(line for line in self.driver.stdout if "successfully on port" in line)
        self.address = f"http://127.0.0.1:{line.split()[-1].rstrip('.')}/session"
        options = {"binary": binary, "args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                                               "--window-size=1280,900"]}
        wanted = {"capabilities": {"alwaysMatch": {"browserName": "chrome", "goog:chromeOptions": options}}}
        self.address += "/" + self.post("", wanted)["sessionId"]

    def post(self, path: str, body: dict):
        request = urllib.request.Request(self.address + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)["value"]

    def run(self, script: str, *arguments):
        """The value that a script returns."""
        return self.post("/execute/sync", {"script": script, "args": list(arguments)})

    def command(self, name: str, **parameters):
        """A command of the browser's own protocol."""
        return self.post("/goog/cdp/execute", {"cmd": name, "params": parameters})

    def open(self, page: Path) -> None:
        """Opens a page and waits until everything in it is drawn."""
        self.post("/url", {"url": f"file://{page}"})
        while not self.run("return [...document.querySelectorAll('.view canvas')].every((one) => one.dataset.ready)"):
            time.sleep(0.02)

    def close(self) -> None:
        urllib.request.urlopen(urllib.request.Request(self.address, method="DELETE"))
        self.driver.terminate()
        self.driver.wait()
