"""Stands in for `srwm train`: a run that ends as the setting `do` says, without training anything.

Beside its result a run leaves `starts`, a byte for each time that it was started, and `saved` once it was interrupted.
"""

import argparse
import json
import os
import signal
import sys
import time
from pathlib import Path


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("recipe")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--resume", action="store_true", required=True)
    parser.add_argument("--no-test", action="store_true")
    args = parser.parse_args()
    settings = dict(word.split("=", 1) for word in args.set)
    args.out.mkdir(parents=True, exist_ok=True)
    with (args.out / "starts").open("a") as file:
        file.write("x")
    (args.out / "environment.json").write_text(json.dumps(dict(os.environ)))
    behave(settings.get("do", "finish"), args.seed, args.out)
    result = {"format": 1, "kind": "few-shot", "recipe": args.recipe, "seed": args.seed, "step": 7}
    layers = int(settings.get("model.num_layers", "0"))
    score = 0.5 + layers / 16 + args.seed / 8
    test = {"accuracy": 0.25 + args.seed / 8} if not args.no_test else None
    (args.out / "result.json").write_text(json.dumps({**result, "score": score, "test": test}))


def behave(what, seed, out):
    sweep = out.parent.parent
    match what:
        case "fail-seed-1" if seed == 1:
            sys.stdout.write("the last words\x1b[2J of seed 1\n")
            sys.exit(1)
        case "die-seed-1" if seed == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        case "no-result":
            sys.exit(0)
        case "wait-for-go":
            (out / "pid.part").write_text(str(os.getpid()))
            (out / "pid.part").rename(out / "pid")
            wait_for(sweep / "go")
        case "meet":
            # Ends only if all three seeds run at the same time.
            for other in range(3):
                wait_for(out.parent / out.name.replace(f"seed={seed}", f"seed={other}") / "starts")
        case "meet-two":
            # Ends only if seeds 0 and 1 run at the same time.
            if seed < 2:
                wait_for(out.parent / out.name.replace(f"seed={seed}", f"seed={1 - seed}") / "starts")
        case "save-when-told" if not (out / "saved").exists():
            try:
                (out / "ready").touch()
                wait_for(sweep / "never")
            except KeyboardInterrupt:
                (out / "saved").touch()
                sys.exit(130)
        case "deaf":
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            (out / "ready").touch()
            wait_for(sweep / "never")


def wait_for(path):
    for _ in range(3000):
        if path.exists():
            return
        time.sleep(0.02)
    sys.exit(f"{path} did not come")


if __name__ == "__main__":
    main()
