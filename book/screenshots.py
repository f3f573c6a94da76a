#!/usr/bin/env python3
"""Makes the pictures of reports in docs/: carries out the tests, and photographs their reports with headless Chromium.

    python3 -B book/screenshots.py              # docs/report.png, from a test of a minute
    python3 -B book/screenshots.py --bakeoff    # docs/bakeoff/*.png, from bakeoffs/five-caches.toml, 45 minutes

Tests run in target/screenshots. A bake-off that is there already goes on where it was. `make all` builds the program;
`make devices` installs Chromium and the devices; Pillow (Debian's python3-pil) makes the pictures small.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

TREE = Path(__file__).resolve().parent.parent
DOCS = TREE / "docs"
WORK = TREE / "target" / "screenshots"

COLOURS = 160

# Pictures of the bake-off: the file, the sections of the report that it shows (all, if there are none), and the
# height in pixels (as high as the content, if there is none).
BAKEOFF = [
    ("1-first-screen", [], 1000),
    ("2-participants-rules", ["rules"], None),
    ("3-response-time", ["response-time"], None),
    ("4-hit-ratio", ["hits"], None),
    ("5-price", ["price", "cost"], None),
    ("6-claimed-achieved-summary", ["peaks", "summary"], None),
    ("7-squid-memory", ["Squid, memory"], None),
    ("8-builtin", ["built-in proxy"], None),
    ("9-squid-1999", ["Squid"], None),
]


def chromium(*words):
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("there is no Chromium: `make devices` installs it")
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout


def section_id(page, name):
    """The id of a section: itself, or that of the appendix with this title."""
    if re.search(rf'<section id="{re.escape(name)}"', page):
        return name
    found = re.search(rf'<section id="([^"]+)">\s*<h2>Appendix [A-Z]+: {re.escape(name)}\s*<', page)
    if not found:
        sys.exit(f"the report has no section {name}")
    return found.group(1)


def photograph(report, picture, width, sections=(), height=None):
    """Writes a picture of a report, or of some of its sections."""
    page = report.read_text()
    style = ""
    if sections:
        shown = ", ".join(f"#{section_id(page, name)}" for name in sections)
        style = f"nav, header, footer, main > * {{ display: none !important }} {shown} {{ display: block !important }}"
    # The copy may have a style and a script that the original forbids.
    page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page, count=1)
    page = page.replace("</head>", f"<style>{style}</style></head>", 1)
    measure = "<script>document.title = 'height ' + Math.ceil(document.body.getBoundingClientRect().bottom)</script>"
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "report.html"
        if height is None:
            copy.write_text(page.replace("</body>", f"{measure}</body>", 1))
            shown = chromium(f"--window-size={width},1000", "--dump-dom", copy.as_uri())
            height = int(re.search(r"<title>height (\d+)", shown).group(1))
        copy.write_text(page)
        chromium(f"--window-size={width},{height}", f"--screenshot={picture}", copy.as_uri())
    # Charts and text have few colours.
    image = Image.open(picture).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    image.save(picture, optimize=True)
    print(f"{picture.relative_to(TREE)}: {width} x {height}, {picture.stat().st_size // 1024} KB")


def run(program, *words):
    WORK.mkdir(parents=True, exist_ok=True)
    return subprocess.run([program, *words], cwd=WORK, check=False).returncode


def of_a_run(program):
    out = WORK / "report"
    for _ in range(5):
        shutil.rmtree(out, ignore_errors=True)
        words = ["--device", "squid", "--device_opt", "mem=64MB", "--req_rate", "100/sec", "--goal", "1min"]
        if run(program, "run", *words, "--label", "example", "--out", str(out)) == 0:
            return photograph(out / "report.html", DOCS / "report.png", 1280, height=760)
    sys.exit("no run was VALID: this machine is busy")


def of_a_bakeoff(program):
    if not (WORK / "runs" / "bakeoff" / "bakeoff-1").exists():
        run(program, "import", str(TREE / "data" / "bakeoff-1.csv"))
    if run(program, "bakeoff", str(TREE / "bakeoffs" / "five-caches.toml")) != 0:
        sys.exit("the bake-off did not end")
    report = WORK / "bakeoff.html"
    run(program, "bakeoff", "report", "--out", str(report))
    for name, sections, height in BAKEOFF:
        photograph(report, DOCS / "bakeoff" / f"{name}.png", 1000, sections, height)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bakeoff", action="store_true", help="the pictures of the bake-off instead")
    parser.add_argument("--program", default=str(TREE / "target" / "release" / "polygraph"), help="the program")
    options = parser.parse_args()
    (of_a_bakeoff if options.bakeoff else of_a_run)(options.program)


if __name__ == "__main__":
    main()
