"""Parts of a benchmark, each in a process of its own, so that its peak memory is its own."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable


def peak() -> float:
    """Return the largest memory this process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def run(module: str, parts: dict[str, Callable[[], list[str]]], columns: tuple[str, ...]) -> None:
    """Print one Markdown row for each part that the command line names; without names, for all."""
    names = sys.argv[1:]
    if len(names) == 2 and names[0] == "--alone":
        print("| " + " | ".join([names[1], *parts[names[1]](), f"{peak():.0f}"]) + " |")
        return
    columns = ("part", *columns, "peak MB")
    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|", flush=True)
    for name in names or parts:
        subprocess.run([sys.executable, "-m", module, "--alone", name], check=True)
