"""Write the page about the graph of 10,000 real SIFT descriptors; with Chromium, also a picture of it.

python examples/report.py [--out FOLDER] [--picture]
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

import tonari
import tonari.io

HERE = Path(__file__).parent
K = 10
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def browser() -> str | None:
    """Return the first browser that is installed."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def picture(page: Path, out: Path, *, width: int, height: int, dark: bool = False) -> None:
    """Take a picture of a page, in a frame of this width, since the browser's windows have a least width."""
    colours = "dark" if dark else "light"
    with tempfile.TemporaryDirectory() as folder:
        frame = Path(folder) / "frame.html"
        frame.write_text(
            f"<html style='color-scheme:{colours}'><body style='margin:0'><iframe src='{page.resolve().as_uri()}' "
            f"style='border:0;width:{width}px;height:{height}px;color-scheme:{colours}'></iframe></body></html>"
        )
        subprocess.run(
            [
                *(str(browser()), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
                *(f"--user-data-dir={folder}/profile", f"--window-size={width},{height}"),
                *(f"--screenshot={out.resolve()}", frame.as_uri()),
            ],
            check=True,
            capture_output=True,
            timeout=120,
        )


def main(arguments: list[str] | None = None) -> None:
    """Build the graph and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=HERE.parent / "demo-output", help="default: demo-output")
    parser.add_argument("--picture", action="store_true", help="also report.png, which docs/report.md shows")
    parser.add_argument("--points", type=int, default=10_000, help="the first so many descriptors")
    given = parser.parse_args(arguments)
    points = tonari.io.read(HERE / "sift-photo-10k.bvecs")[: given.points].astype(np.float32)
    graph = tonari.knn_graph(points, K, method="nn-descent", recall=0.95, seed=0)
    given.out.mkdir(parents=True, exist_ok=True)
    page = given.out / "report.html"
    page.write_text(graph.to_html(points, title=f"{len(points):,} SIFT descriptors, k = {K}"))
    print(f"wrote {page}, {page.stat().st_size:,} bytes")
    if given.picture:
        if browser() is None:
            raise SystemExit(f"--picture needs one of {', '.join(BROWSERS)}")
        picture(page, given.out / "report.png", width=1250, height=1250)
        print(f"wrote {given.out / 'report.png'}")


if __name__ == "__main__":
    main()
