"""Headless Chromium for tests: one window, what it asked the network for, and pictures."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update",
         "--disable-sync"]  # fmt: skip
#: Seconds until something is expected to have happened, on a busy machine.
PATIENCE = 30


def programs() -> tuple[str, str]:
    """Chromium and its driver; without them tests are skipped, but not where all must run."""
    found = shutil.which("chromium"), shutil.which("chromedriver")
    if None in found or find_spec("selenium") is None:
        words = "this needs Debian's packages chromium and chromium-driver, and selenium"
        (pytest.fail if os.environ.get("DENIABLE_CI") else pytest.skip)(words)
    return found  # type: ignore[return-value]


class Browser:
    """A driver with the few words that our tests need."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def one(self, css: str) -> Any:
        return self.driver.find_element("css selector", css)

    def all(self, css: str) -> list[Any]:
        found: list[Any] = self.driver.find_elements("css selector", css)
        return found

    def text(self, css: str) -> str:
        """The text as it is seen."""
        return seen(self.one(css).text)

    def wait(self, condition: Callable[[], Any]) -> Any:
        """Until it holds; what is not there yet counts as false."""
        from selenium.common.exceptions import WebDriverException
        from selenium.webdriver.support.ui import WebDriverWait

        waiting = WebDriverWait(self.driver, PATIENCE, 0.1, [WebDriverException])
        return waiting.until(lambda _: condition())

    def keys(self, *keys: str) -> None:
        """Strike keys, wherever the focus is."""
        from selenium.webdriver import ActionChains

        ActionChains(self.driver).send_keys(*keys).perform()

    def look(self, *, width: int, dark: bool) -> None:
        """Choose the width of the window, and light or dark."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 640}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})

    def picture(self, path: Path) -> None:
        """Save the whole page as it looks now."""
        size = self.driver.execute_cdp_cmd("Page.getLayoutMetrics", {})["cssContentSize"]
        options = {"captureBeyondViewport": True, "clip": {**size, "scale": 1}}
        data = self.driver.execute_cdp_cmd("Page.captureScreenshot", options)["data"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(data))

    def complaints(self) -> list[str]:
        """What the console said since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def hosts(self) -> set[str]:
        """Which hosts were asked for anything since the last call; its own pages have none."""
        events = [
            json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")
        ]
        asked = [e["params"] for e in events if e["method"] == "Network.requestWillBeSent"]
        places = [urlsplit(params["request"]["url"]) for params in asked]
        return {place.netloc for place in places if place.scheme in ("http", "https", "ws", "wss")}


def seen(text: str) -> str:
    """A text without the marks that keep directions of writing apart."""
    return re.sub("[\u2066-\u2069]", "", text)


@contextmanager
def browsing(folder: Path) -> Iterator[Browser]:
    """A browser with a fresh profile."""
    binary, driver = programs()
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in (*FLAGS, f"--user-data-dir={folder / 'profile'}"):
        options.add_argument(flag)
    options.add_experimental_option("prefs", {"download.default_directory": str(folder)})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = webdriver.Chrome(options=options, service=Service(driver))
    try:
        yield Browser(started)
    finally:
        started.quit()
