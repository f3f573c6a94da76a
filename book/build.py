#!/usr/bin/env python3
"""Builds the manual, the pages of docs/, as a book with search in target/book, and checks the result.

    python3 -B book/build.py MDBOOK [--search WORD]

The book stands alone: files of the tree that its pages link to are copied into it. The build fails on a warning of
mdBook, and on a link or anchor that leads nowhere. With --search, headless Chromium searches the finished book for a
word as a reader does, and the build fails if it finds nothing.
"""

import argparse
import html
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote, urldefrag

TREE = Path(__file__).resolve().parent.parent
DOCS = TREE / "docs"
BOOK = TREE / "target" / "book"

LINK = re.compile(r'(<(?:a|img)\b[^>]*?\b(?:href|src)=")([^"]*)(")')


def is_outside(link):
    return re.match(r"[a-z]+:", link) is not None


def build(mdbook):
    shutil.rmtree(BOOK, ignore_errors=True)
    done = subprocess.run([mdbook, "build"], cwd=TREE, capture_output=True, text=True, check=False)
    print(done.stderr, end="")
    if done.returncode != 0 or re.search(r"\b(WARN|ERROR)\b", done.stderr):
        sys.exit("the book has warnings")


def file_of_tree(page, link):
    """The file of the tree that a link of a page means, if it is not part of the book."""
    path = unquote(urldefrag(link).url)
    source = (DOCS / page.relative_to(BOOK)).parent / path
    # mdBook takes every link to Markdown for a link to a page of the book.
    for candidate in [source, source.with_suffix(".md")]:
        found = candidate.resolve()
        if found.is_file() and found.is_relative_to(TREE) and not found.is_relative_to(DOCS):
            return found.relative_to(TREE)
    return None


def copy_files(page):
    """Copies the files of the tree that a page links to into the book, and lets the links lead there."""
    def adapted(found):
        link = html.unescape(found.group(2))
        if is_outside(link) or (page.parent / unquote(urldefrag(link).url)).is_file():
            return found.group(0)
        file = file_of_tree(page, link)
        if file is None:
            return found.group(0)
        # Browsers show text, whatever its format is.
        copy = BOOK / "tree" / file.with_name(file.name + ".txt")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(TREE / file, copy)
        up = "../" * len(page.parent.relative_to(BOOK).parts)
        return f"{found.group(1)}{up}{copy.relative_to(BOOK).as_posix()}{found.group(3)}"

    text = page.read_text()
    page.write_text(LINK.sub(adapted, text))


def dead_links(page, ids):
    for found in LINK.finditer(page.read_text()):
        link = html.unescape(found.group(2))
        if is_outside(link):
            continue
        path, anchor = urldefrag(link)
        target = (page.parent / unquote(path)).resolve() if path else page
        if not target.is_file():
            yield f"{page.relative_to(BOOK)}: {link}"
        elif anchor and target.suffix == ".html" and unquote(anchor) not in ids[target]:
            yield f"{page.relative_to(BOOK)}: {link} (no such anchor)"


def search(word):
    """What the search of the book finds, as its page shows it."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("there is no Chromium: `make devices` installs it")
    address = f"{(BOOK / 'index.html').as_uri()}?search={word}"
    words = ["--headless", "--no-sandbox", "--disable-gpu", "--allow-file-access-from-files"]
    shown = subprocess.run(
        [browser, *words, "--virtual-time-budget=20000", "--dump-dom", address],
        check=True, capture_output=True, text=True, timeout=300,
    ).stdout
    results = re.search(r'id="mdbook-searchresults"(.*?)</ul>|id="searchresults"(.*?)</ul>', shown, re.S)
    found = re.findall(r'<a href="([^"?#]*)', results.group(0)) if results else []
    if not found:
        sys.exit(f"the search finds nothing for {word}")
    print(f"search for {word}: {', '.join(dict.fromkeys(found))}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mdbook", help="the program")
    parser.add_argument("--search", metavar="WORD", help="search the finished book for this word")
    options = parser.parse_args()
    build(options.mdbook)
    pages = sorted(page for page in BOOK.rglob("*.html") if page.name not in ("404.html", "toc.html"))
    for page in pages:
        copy_files(page)
    ids = {page: set(re.findall(r'\bid="([^"]*)"', page.read_text())) for page in pages}
    # The page for printing joins all others, so it repeats their links.
    dead = [link for page in pages if page.name != "print.html" for link in dead_links(page, ids)]
    if dead:
        sys.exit("dead links:\n" + "\n".join(dead))
    print(f"{len(pages)} pages, no dead link")
    if options.search:
        search(options.search)


if __name__ == "__main__":
    main()
