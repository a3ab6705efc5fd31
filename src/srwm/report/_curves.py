"""The curves of a training, found in its log by the names of the numbers."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from srwm.runs.charts import Chart, Line

_CHARTS = (
    (r"validation/(?P<name>accuracy)", "Validation accuracy", True),
    (r"train/(?P<name>accuracy)", "Training accuracy", True),
    (r"train/(?P<source>[^/]+)/(?P<name>k\d+)", "Training accuracy on the k-th image of a class, {source}", True),
    (r"train/(?P<name>score)", "Score over all games, training levels", False),
    (r"train/return/(?P<name>.+)", "Return of training episodes", False),
    (r"train/(?P<name>loss)", "Training loss", False),
    (r"train/(?P<name>entropy)", "Entropy of the policy", False),
    (r"train/(?P<name>lag)", "Policy lag, in updates", False),
    (r"train/(?P<name>gradient_norm)", "Norm of the gradient", False),
)
"""Which numbers make up which chart, and whether they are shares; the order is that of the page."""


def training_charts(records: Sequence[Mapping[str, Any]]) -> list[Chart]:
    """Make the charts of a log.

    Args:
        records: what `read_metrics` gave.
    """
    points: dict[tuple[int, str], dict[str, tuple[list[float], list[float]]]] = {}
    by_frames = any("frames" in record for record in records)
    for record in records:
        at = record.get("frames") if by_frames else record.get("step")
        if isinstance(at, bool) or not isinstance(at, int | float):
            continue
        for key, value in record.items():
            if not isinstance(value, float):
                continue
            for place, (pattern, title, _) in enumerate(_CHARTS):
                found = re.fullmatch(pattern, key)
                if found:
                    names = found.groupdict()
                    chart = points.setdefault((place, title.format(**names)), {})
                    xs, ys = chart.setdefault(names["name"], ([], []))
                    xs.append(float(at))
                    ys.append(value)
    x_label = "frames" if by_frames else "training step"
    return [
        Chart(title, x_label, tuple(Line(name, *line) for name, line in lines.items()), _CHARTS[place][2])
        for (place, title), lines in sorted(points.items(), key=lambda item: item[0])
    ]
