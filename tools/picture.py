"""Makes pictures from the real app: the README's screenshot and short film, and the preview of shared links.

.venv/bin/python tools/picture.py          (after tools/test.py --install-only; writes .docs/playground.png and .gif)
"""

from __future__ import annotations

import io
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import environment
from PIL import Image
from playwright.sync_api import Page, sync_playwright

FOLDER = environment.ROOT / ".docs"
SENTENCE = "Zwei Männer spielen Gitarre auf der Straße."
SIZE = {"width": 1240, "height": 1120}
FILM_WIDTH = 800
COLOURS = 160
PREVIEW = environment.ROOT / "seqdemo" / "ui" / "preview.jpg"
PREVIEW_SIZE = {"width": 1200, "height": 630}
Film = list[tuple[Image.Image, int]]  # pictures and how long each stays, in milliseconds


@contextmanager
def running_app() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    address = f"http://127.0.0.1:{port}/"
    app = subprocess.Popen([sys.executable, "app.py", "--port", str(port)], cwd=environment.ROOT)
    try:
        for _ in range(300):
            try:
                urllib.request.urlopen(address, timeout=5).close()
                break
            except OSError:
                time.sleep(0.2)
        yield address
    finally:
        app.terminate()
        app.wait(20)


def settle(page: Page, milliseconds: int = 700) -> None:
    """Until nothing is being decoded and the last drawing is done."""
    page.wait_for_selector(".s-finding:not(:empty)")
    page.wait_for_timeout(milliseconds)


def shoot(page: Page, film: Film, milliseconds: int) -> None:
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    height = round(picture.height * FILM_WIDTH / picture.width)
    film.append((picture.resize((FILM_WIDTH, height), Image.Resampling.LANCZOS), milliseconds))


def type_and_look(page: Page) -> Film:
    film: Film = []
    shoot(page, film, 1500)
    box = page.locator("#s-input")
    box.fill("")
    for word in SENTENCE.split():
        box.press_sequentially(word + " ", delay=15)
        settle(page)
        shoot(page, film, 600)
    shoot(page, film, 1500)
    for name in ("alignment", "gates", "tree"):
        page.locator(f"#s-tab-{name}").click()
        settle(page)
        shoot(page, film, 2000)
    return film


def save_film(film: Film) -> None:
    strip = Image.new("RGB", (FILM_WIDTH, sum(picture.height for picture, _ in film)))
    for number, (picture, _) in enumerate(film):
        strip.paste(picture, (0, number * picture.height))
    palette = strip.quantize(COLOURS, method=Image.Quantize.FASTOCTREE)
    frames = [picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture, _ in film]
    times = [milliseconds for _, milliseconds in film]
    frames[0].save(FOLDER / "playground.gif", save_all=True, append_images=frames[1:], duration=times, loop=0, optimize=True)


def save_preview(page: Page, address: str) -> None:
    """What a link to the app shows where it is shared: searches and tree, without the frame of the page."""
    page.goto(address)
    settle(page, 2500)
    page.evaluate(
        "document.querySelectorAll('.s-header, .s-input, .s-first, .s-doing, .s-ring').forEach((node) => node.remove())"
    )
    settle(page, 300)
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    picture.save(PREVIEW, "JPEG", quality=82, optimize=True)
    page.close()


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    with running_app() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=environment.find_browser(), args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE, color_scheme="light", device_scale_factor=1.5)  # type: ignore[arg-type]
        page.goto(address)
        settle(page, 2500)
        page.screenshot(path=FOLDER / "playground.png")
        save_film(type_and_look(page))
        save_preview(browser.new_page(viewport=PREVIEW_SIZE, color_scheme="light"), address)
        browser.close()
    for file in sorted(FOLDER.iterdir()):
        print(f"{file.relative_to(environment.ROOT)}  {file.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
