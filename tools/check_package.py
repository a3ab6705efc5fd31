"""Builds the package, installs the wheel in a fresh environment, and asks the model that comes with it: `make package`.

The wheel is built from the sdist, so both are tried. With `--tag`, the version must be that of the tag, and the
changelog must have its date.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parent.parent
MOST_WHEEL_BYTES = 15_000_000

_ONE_ANSWER = """
import torch

import srwm

model = srwm.load("omniglot-1shot")
images = torch.randint(256, (6, 28, 28), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
state = model.learn(images[:5], torch.arange(5))
answer = model.predict(images[5:], state)
assert answer.shape == (1, 5) and abs(float(answer.sum()) - 1) < 1e-5, answer
print("one answer:", [round(float(each), 3) for each in answer[0]])
"""


def main() -> int:
    """Build, measure, install and try; stop at the first thing that is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tag", help="the tag of the release, such as v0.2.0")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="where the files are put (default: dist)")
    args = parser.parse_args()
    version = _version()
    if args.tag is not None:
        problem = problem_of_tag(args.tag, version, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
        if problem is not None:
            sys.exit(problem)
    wheel = _build(args.out, version)
    size = wheel.stat().st_size
    print(f"{wheel.name}: {size / 1e6:.2f} MB")
    if size > MOST_WHEEL_BYTES:
        sys.exit(f"the wheel has {size:,} bytes; expected at most {MOST_WHEEL_BYTES:,}")
    with tempfile.TemporaryDirectory() as folder:
        _try(wheel, version, Path(folder))
    return 0


def problem_of_tag(tag: str, version: str, changelog: str) -> str | None:
    """Say why a tag cannot be released; None if it can."""
    if tag != f"v{version}":
        return f"the tag is {tag!r}; expected 'v{version}', the version in src/srwm/__init__.py"
    if re.search(rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", changelog, re.MULTILINE) is None:
        return f"CHANGELOG.md has no line '## [{version}] - YYYY-MM-DD'"
    return None


def _version() -> str:
    found = re.search(
        r'^__version__ = "(.+)"$', (ROOT / "src/srwm/__init__.py").read_text(encoding="utf-8"), re.MULTILINE
    )
    if found is None:
        sys.exit("src/srwm/__init__.py has no __version__")
    return found[1]


def _build(out: Path, version: str) -> Path:
    """Build the sdist, and the wheel from it."""
    for name in (f"srwm-{version}-py3-none-any.whl", f"srwm-{version}.tar.gz"):
        (out / name).unlink(missing_ok=True)
    _run(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT)
    return out / f"srwm-{version}-py3-none-any.whl"


def _try(wheel: Path, version: str, folder: Path) -> None:
    """Install the wheel and nothing of the clone, and use it from an empty folder."""
    venv.create(folder / "venv", with_pip=True)
    binaries = folder / "venv" / ("Scripts" if sys.platform == "win32" else "bin")
    python = binaries / "python"
    _run(
        python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-c", ROOT / "constraints.txt", wheel
    )
    said = _run(binaries / "srwm", "--version", cwd=folder)
    if said != f"srwm {version}":
        sys.exit(f"the installed command says {said!r}; expected 'srwm {version}'")
    print(said)
    _run(binaries / "srwm", "models", cwd=folder)
    print(_run(python, "-c", _ONE_ANSWER, cwd=folder))


def _run(*words: str | Path, cwd: Path = ROOT) -> str:
    """Run a command; give what it prints, or stop with all that it said."""
    done = subprocess.run([*map(str, words)], cwd=cwd, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
