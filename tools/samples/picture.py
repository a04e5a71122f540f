"""Draws a picture of a page: picture.py PAGE PNG [SELECTOR...]. Does nothing without Chromium.

Without selectors: the beginning of the page. With selectors: just the first element of each, unfolded.
"""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/report"))
import browser

ONLY = """(async () => {
  const main = document.createElement("main");
  for (const selector of %s) {
    const found = document.querySelector(selector);
    if (!found) throw new Error("nothing matches " + selector);
    main.append(found.cloneNode(true));
  }
  main.querySelectorAll("details").forEach((d) => { d.open = true });
  if (main.firstChild.tagName === "DETAILS") main.firstChild.open = true;
  document.body.replaceChildren(main);
  for (let i = 0; i < 2; i++) await new Promise((drawn) => requestAnimationFrame(drawn));
})()"""

if browser.find():
    chromium = browser.Browser()
    try:
        chromium.open(sys.argv[1])
        chromium.view(1180, 880)
        if sys.argv[3:]:
            chromium.run(ONLY % json.dumps(sys.argv[3:]))
        chromium.picture(sys.argv[2], whole=bool(sys.argv[3:]))
    finally:
        chromium.close()
