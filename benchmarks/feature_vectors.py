"""How well feature vectors of many kinds are learnt from few labelled examples, and from streams, beside other tools.

No data set here was trained on, and none served to choose anything: the shipped model `tabular` has seen random tasks
alone. The first part gives each method the same 5, 10, 20 or 50 labelled examples (at least one of each class) and asks
for 200 others; where a data set has more than ten classes, each draw takes five of them. The second part runs River's
`progressive_val_score`. Needs `pip install 'srwm[sklearn,river]'`; the image sets are taken from the data folder, in
part as raw pixels and in part as features of the encoder of the shipped model `omniglot-1shot`.

    python benchmarks/feature_vectors.py --data DATA --json docs/benchmarks/feature-vectors.json
"""

import argparse
import json
import math
import platform
import time
import warnings
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import river
import sklearn
import torch
from numpy.typing import NDArray
from river import base, evaluate, linear_model, metrics, multiclass, naive_bayes, neighbors, preprocessing, tree
from river import datasets as river_datasets
from sklearn import datasets as sklearn_datasets
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from srwm.data import load_images
from srwm.estimators import InContextClassifier, InContextStreamClassifier
from srwm.fewshot import load_model
from srwm.supervised.network import to_unit
from srwm.supervised.statistics import t_95

EXAMPLES = (5, 10, 20, 50)
QUERIES = 200
MOST_CLASSES, WAYS = 10, 5
STREAM_LENGTH = 5000
PER_CLASS = 100
"""Images of a class that are loaded, at most."""


class DataSet(NamedTuple):
    """Examples with their classes."""

    x: NDArray[np.float64]
    y: NDArray[np.int64]


def numeric(stream: Any) -> DataSet:
    """Read a stream of River whose features are numbers."""
    rows, labels = zip(*((list(x.values()), y) for x, y in stream), strict=True)
    return DataSet(np.array(rows, float), np.unique(np.array(labels), return_inverse=True)[1])


def images(source: str, folder: Path, *, size: int, channels: int, encoder: str | None = None) -> DataSet:
    """Images of the test part: raw pixels, or the features of a shipped encoder."""
    loaded = load_images(source, "test", folder=folder, image_size=size, channels=channels)
    starts, counts = loaded.starts.tolist(), loaded.counts.tolist()
    chosen = torch.cat([start + torch.arange(min(n, PER_CLASS)) for start, n in zip(starts, counts, strict=True)])
    labels = torch.cat([torch.full((min(n, PER_CLASS),), c) for c, n in enumerate(counts)])
    pixels = to_unit(loaded.images[chosen])
    if encoder is None:
        return DataSet(pixels.flatten(1).double().numpy(), labels.numpy())
    model = load_model(encoder)
    with torch.no_grad():
        found = torch.cat([model.features(part) for part in pixels.split(500)])
    return DataSet(found.double().numpy(), labels.numpy())


def data_sets(folder: Path) -> Iterator[tuple[str, Callable[[], DataSet]]]:
    """Name every data set, and say how it is loaded."""
    for name in ("iris", "wine", "breast_cancer", "digits"):
        yield (
            f"{name} (scikit-learn)",
            lambda name=name: DataSet(*getattr(sklearn_datasets, f"load_{name}")(return_X_y=True)),
        )
    for name in ("Phishing", "ImageSegments", "Bananas"):
        yield f"{name} (River)", lambda name=name: numeric(getattr(river_datasets, name)())
    small = {"size": 28, "channels": 1}
    for title, source in (("MNIST", "mnist"), ("Fashion-MNIST", "fashion-mnist"), ("Omniglot", "omniglot")):
        yield f"{title}, pixels", lambda source=source: images(source, folder, **small)
        yield (
            f"{title}, features",
            lambda source=source: images(source, folder, encoder="omniglot-1shot", **small),
        )
    for title, source in (("CIFAR-10", "cifar-10"), ("CIFAR-100", "cifar-fs"), ("Tiny-ImageNet", "tiny-imagenet-100")):
        yield f"{title}, pixels", lambda source=source: images(source, folder, size=16, channels=3)


def methods() -> dict[str, Callable[[], Any]]:
    """Name what is compared; all but ours get standardised features, which ours does by itself."""
    return {
        "srwm": InContextClassifier,
        "nearest mean": lambda: make_pipeline(StandardScaler(), NearestCentroid()),
        "logistic regression": lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
        "Gaussian naive Bayes": lambda: make_pipeline(StandardScaler(), GaussianNB()),
        "nearest neighbour": lambda: make_pipeline(StandardScaler(), KNeighborsClassifier(1)),
    }


def draw(data: DataSet, examples: int, rng: np.random.Generator) -> tuple[DataSet, DataSet] | None:
    """Draw a task: examples to learn from, at least one of each class, and others to ask for."""
    classes = np.unique(data.y)
    if len(classes) > MOST_CLASSES:
        classes = rng.choice(classes, WAYS, replace=False)
    if examples < len(classes):
        return None
    order = rng.permutation(np.flatnonzero(np.isin(data.y, classes)))
    first = [np.flatnonzero(data.y[order] == c)[0] for c in classes]
    rest = np.setdiff1d(np.arange(len(order)), first)
    support = rng.permutation(np.concatenate([first, rest[: examples - len(classes)]]).astype(int))
    query = rest[examples - len(classes) :][:QUERIES]
    return tuple(DataSet(data.x[order[part]], data.y[order[part]]) for part in (support, query))  # type: ignore[return-value]


def few_examples(folder: Path, draws: int) -> list[dict[str, Any]]:
    """Measure every method on the same draws of every data set."""
    rows = []
    for number, (name, load) in enumerate(data_sets(folder)):
        data = load()
        for examples in EXAMPLES:
            found: dict[str, list[float]] = {method: [] for method in methods()}
            for index in range(draws):
                task = draw(data, examples, np.random.default_rng([number, examples, index]))
                if task is None:
                    break
                support, query = task
                for method, make in methods().items():
                    found[method].append(float(make().fit(*support).score(*query)))
            if found["srwm"]:
                size = {"features": data.x.shape[1], "classes": min(len(np.unique(data.y)), 10**9)}
                rows.append({"data": name, "examples": examples, **size, "accuracy": found})
                print(name, examples, {m: f"{100 * np.mean(a):.1f}" for m, a in found.items()}, flush=True)
    return rows


def interval(values: NDArray[np.float64]) -> float:
    """Half the 95% interval of a mean."""
    return t_95(len(values) - 1) * float(np.std(values, ddof=1)) / math.sqrt(len(values))


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Means over data sets, and of what we are ahead of each other method, with intervals from the draws."""
    found = {}
    for examples in (*EXAMPLES, None):
        chosen = [row for row in rows if examples in (None, row["examples"])]
        ours = np.mean([row["accuracy"]["srwm"] for row in chosen], axis=0)
        found[str(examples or "all")] = {
            method: {
                "accuracy": float(np.mean([row["accuracy"][method] for row in chosen])),
                "interval": interval(np.mean([row["accuracy"][method] for row in chosen], axis=0)),
                "ahead": float(np.mean(ours - np.mean([row["accuracy"][method] for row in chosen], axis=0))),
                "ahead_interval": interval(ours - np.mean([row["accuracy"][method] for row in chosen], axis=0)),
                "data_sets": len({row["data"] for row in chosen}),
            }
            for method in rows[0]["accuracy"]
        }
    return found


class LastLabel(base.Classifier):
    """Says the label of the example before: what the order of a stream gives away."""

    def __init__(self) -> None:
        self.last: Any = None

    @property
    def _multiclass(self) -> bool:
        return True

    def learn_one(self, x: dict[Any, Any], y: Any) -> None:
        """Keep the label."""
        self.last = y

    def predict_one(self, x: dict[Any, Any], **kwargs: Any) -> Any:
        """Say it."""
        return self.last


def stream_methods() -> dict[str, Callable[[], Any]]:
    """Name what is compared on streams, as River's own pages set them up."""
    scaled = preprocessing.StandardScaler
    return {
        "srwm": InContextStreamClassifier,
        "GaussianNB": naive_bayes.GaussianNB,
        "HoeffdingTree": tree.HoeffdingTreeClassifier,
        "LogisticRegression": lambda: scaled() | multiclass.OneVsRestClassifier(linear_model.LogisticRegression()),
        "KNN": lambda: scaled() | neighbors.KNNClassifier(),
        "last label": LastLabel,
    }


def streams() -> list[dict[str, Any]]:
    """Measure the running accuracy of every method on River's own data sets and, in a fixed order, scikit-learn's."""
    made: dict[str, Callable[[], list[tuple[dict[Any, Any], Any]]]] = {
        name: lambda name=name: list(getattr(river_datasets, name)().take(STREAM_LENGTH))
        for name in ("Phishing", "ImageSegments", "Bananas")
    }
    for name in ("wine", "breast_cancer", "digits"):

        def shuffled(name: str = name) -> list[tuple[dict[Any, Any], Any]]:
            x, y = getattr(sklearn_datasets, f"load_{name}")(return_X_y=True)
            order = np.random.default_rng(0).permutation(len(x))
            return [(dict(enumerate(x[i].tolist())), int(y[i])) for i in order]

        made[f"{name} (scikit-learn, in random order)"] = shuffled
    rows = []
    for name, load in made.items():
        stream = load()
        half = len(stream) // 2
        for method, make in stream_methods().items():
            model, metric = make(), metrics.Accuracy()
            evaluate.progressive_val_score(stream[:half], model, metric)
            first, second = metric.get(), metrics.Accuracy()
            evaluate.progressive_val_score(stream[half:], model, second)
            whole = (first * half + second.get() * (len(stream) - half)) / len(stream)
            row = {"data": name, "method": method, "examples": len(stream), "accuracy": whole}
            rows.append({**row, "first_half": first, "second_half": second.get()})
            print({k: round(v, 4) if isinstance(v, float) else v for k, v in rows[-1].items()}, flush=True)
    return rows


def markdown(content: dict[str, Any]) -> str:
    """The tables of the page: means over data sets, each data set by itself, streams."""
    lines: list[str] = []

    def table(head: list[str], rows: list[list[str]]) -> None:
        lines.extend(["", "| " + " | ".join(head) + " |", "|" + " --- |" * len(head)])
        lines.extend("| " + " | ".join(row) + " |" for row in rows)

    names = list(content["few_examples"][0]["accuracy"])
    rows = []
    for examples, found in content["summary"].items():
        rows.append([examples, str(found["srwm"]["data_sets"])])
        rows[-1] += [f"{100 * found[name]['accuracy']:.1f} ± {100 * found[name]['interval']:.1f}" for name in names]
        for name in ("nearest mean", "logistic regression"):
            rows[-1].append(f"{100 * found[name]['ahead']:+.1f} ± {100 * found[name]['ahead_interval']:.1f}")
    table(["examples", "data sets", *names, "ahead of nearest mean", "of logistic regression"], rows)
    rows = []
    for row in content["few_examples"]:
        means = {name: 100 * float(np.mean(row["accuracy"][name])) for name in names}
        gap = interval(np.array(row["accuracy"]["srwm"]) - np.array(row["accuracy"]["logistic regression"]))
        best = max(means.values())
        shown = [f"**{value:.1f}**" if value == best else f"{value:.1f}" for value in means.values()]
        head = [row["data"], str(row["features"]), str(row["examples"])]
        rows.append([*head, *shown, f"{means['srwm'] - means['logistic regression']:+.1f} ± {100 * gap:.1f}"])
    table(["data", "features", "examples", *names, "srwm ahead of logistic regression"], rows)
    methods_shown = list(stream_methods())
    rows = []
    for name in dict.fromkeys(row["data"] for row in content["streams"]):
        own = {row["method"]: row for row in content["streams"] if row["data"] == name}
        cells = [
            f"{100 * own[m]['accuracy']:.1f} ({100 * own[m]['first_half']:.1f}, {100 * own[m]['second_half']:.1f})"
            for m in methods_shown
        ]
        rows.append([name, f"{own['srwm']['examples']:,}", *cells])
    table(["stream", "examples", *methods_shown], rows)
    return "\n".join(lines)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the data folder, with the packs of the image sets")
    parser.add_argument("--draws", type=int, default=30, help="tasks of each data set and number of examples")
    parser.add_argument("--json", type=Path, help="where to write what was measured")
    parser.add_argument("--only", choices=("few", "streams"), help="one part alone")
    args = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    # Standardising a feature of one value only, or classes of one example: said by others about their own work.
    warnings.filterwarnings("ignore", module="sklearn")
    content: dict[str, Any] = {
        "date": date.fromtimestamp(time.time()).isoformat(),
        "draws": args.draws,
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "scikit-learn": sklearn.__version__,
            "river": river.__version__,
        },
    }
    if args.only != "streams":
        content["few_examples"] = few_examples(args.data, args.draws)
        content["summary"] = summary(content["few_examples"])
        print(json.dumps(content["summary"], indent=1))
    if args.only != "few":
        content["streams"] = streams()
    if args.only is None:
        print(markdown(content))
    if args.json:
        args.json.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
