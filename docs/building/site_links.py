"""Check a built site: every link and anchor leads somewhere, and no page asks another server for anything.

python -m docs.building.site_links site
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADED = {
    "script": "src",
    "img": "src",
    "link": "href",
    "iframe": "src",
    "source": "src",
    "object": "data",
    "use": "href",
}


class Page(HTMLParser):
    """The links of one page, what it loads, and the places in it that can be linked to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        self.anchors |= {value for name in ("id", "name") if (value := values.get(name))}
        if tag == "a" and (link := values.get("href")):
            self.links.append(link)
        if (loaded := values.get(_LOADED.get(tag, ""))) and values.get("rel") != "canonical":
            self.loaded.append(loaded)


def problems(site: Path) -> Iterator[str]:
    """What is wrong with the site, one line each.

    Parameters
    ----------
    site
        Folder of the built site.
    """
    files = (file for file in sorted(site.rglob("*.html")) if "_static" not in file.relative_to(site).parts)
    pages = {file: Page(file.read_text(encoding="utf-8")) for file in files}
    if not pages:
        yield f"{site} holds no page"
    for file, page in pages.items():
        where = file.relative_to(site)
        for link in dict.fromkeys(page.loaded):
            if urlsplit(link).netloc:
                yield f"{where} loads {link} from another server"
        if where.name == "404.html":  # its links start at the root of the server
            continue
        for link in dict.fromkeys([*page.links, *page.loaded]):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                yield f"{where} links to {link}, which is not there"
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                yield f"{where} links to {link}, an anchor that is not there"
    for file in sorted(site.rglob("*.css")):
        if "url(http" in file.read_text(encoding="utf-8").replace('"', ""):
            yield f"{file.relative_to(site)} loads from another server"


def main(arguments: list[str]) -> int:
    found = list(problems(Path(arguments[0]).resolve()))
    print("\n".join(found), file=sys.stderr, end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
