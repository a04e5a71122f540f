"""Draws the picture of README.md: picture.py PAGE PNG. Does nothing without Chromium."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/report"))
import browser

if browser.find():
    chromium = browser.Browser()
    try:
        chromium.open(sys.argv[1])
        chromium.view(1180, 880)
        chromium.picture(sys.argv[2])
    finally:
        chromium.close()
