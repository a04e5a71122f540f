"""The page of a very large fleet in headless Chromium: small, soon painted, and its GPUs can be found.

page.py REPORT MAKE_INVENTORY SOURCE_ROOT GPUS [limits]
With `limits` (a benchmark): at most 10 MB, and first painted within 2 s.
"""
import pathlib
import sys
import tempfile

from costs import make, run

report, make_inventory, root, gpus = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]), int(sys.argv[4])
limited = len(sys.argv) > 5
sys.path.insert(0, str(root / "tests/report"))
import browser  # noqa: E402

WAIT = "new Promise((r) => setTimeout(r, 50))"


def until(chromium, condition):
    """Waits in the page until a condition holds: at any speed, but not for ever."""
    assert chromium.run("(async () => { for (let i = 0; i < 1200; i++) { if (%s) return true; await %s; } "
                        "return false; })()" % (condition, WAIT)), condition


def look_for(chromium, words):
    chromium.run("(() => { const i = document.querySelector('#gpus input'); i.value = '%s'; "
                 "i.dispatchEvent(new Event('input')); })()" % words)


def check_use(chromium):
    last = gpus - 1
    uuid = "%08x-0000-4000-8000-%012x" % (last, last)
    assert chromium.run("document.querySelectorAll('#gpus table').length") == 0, "tables that nobody asked for"
    chromium.run("document.querySelector('#gpus .block').open = true")
    until(chromium, "document.querySelector('#gpus .block table')")
    rows = chromium.run("document.querySelectorAll('#gpus .block tbody tr').length")
    assert rows == 800, rows
    cells = chromium.run("Array.from(document.querySelector('#gpus .block tbody tr').cells, (c) => c.textContent)")
    assert cells[0] == "gpu000000" and cells[2] == "0" and len(cells) >= 8, cells
    assert float(cells[4]) > 0, cells
    look_for(chromium, uuid)
    until(chromium, "document.querySelector('#gpus .found').textContent == '1 found'")
    assert chromium.run("document.querySelectorAll('#gpus .hits tbody tr').length") == 1
    look_for(chromium, "outlier demo-h8")
    until(chromium, "/^[0-9]+ found/.test(document.querySelector('#gpus .found').textContent) && "
                    "!document.querySelector('#gpus .found').textContent.startsWith('1 ')")
    look_for(chromium, "")
    until(chromium, "!document.querySelector('#gpus .hits')")


def main(folder):
    if not browser.find():
        print("Chromium is not installed")
        return 77
    inventory = make(make_inventory, root, gpus, 1, folder)
    page = folder / "page.html"
    cost = run([report, "html", inventory, "-o", page])
    size = page.stat().st_size
    chromium = browser.Browser()
    try:
        chromium.open(page)
        chromium.view(1280, 1000)
        until(chromium, "performance.getEntriesByName('first-contentful-paint').length")
        paint = chromium.run("performance.getEntriesByName('first-contentful-paint')[0].startTime") / 1000
        check_use(chromium)
        assert not chromium.complaints(), chromium.complaints()[:3]
    finally:
        chromium.close()
    print(f"{gpus} GPUs: {cost.cpu_s:.2f} CPU s, {cost.mebibytes:.0f} MiB, page of {size / 1e6:.2f} MB, "
          f"first paint after {paint:.2f} s")
    if limited and (size > 10e6 or paint > 2):
        print("limits: 10 MB, 2 s")
        return 1
    return 0


with tempfile.TemporaryDirectory() as name:
    sys.exit(main(pathlib.Path(name)))
