"""Reads exported metrics, as Prometheus would."""

from dataclasses import dataclass, field

from prometheus_client.parser import text_string_to_metric_families

COUNTED_BY_LIBRARY = "_created"
"""Suffix of metrics with the creation time, which the client library adds to every series."""


@dataclass
class Exported:
    """A metric: its type, the labels of its samples, and the samples."""

    kind: str
    labels: frozenset[str] = frozenset()
    samples: dict[tuple[str, ...], float] = field(default_factory=dict)

    def __getitem__(self, values: str | tuple[str, ...]) -> float:
        return self.samples[(values,) if isinstance(values, str) else values]


def read_exposition(text: str) -> dict[str, Exported]:
    """Return the metrics by name as in a query: counters with `_total`, histograms without a suffix."""
    found: dict[str, Exported] = {}
    for family in text_string_to_metric_families(text):
        if family.name.endswith(COUNTED_BY_LIBRARY):
            continue
        name = f"{family.name}_total" if family.type == "counter" else family.name
        metric = found.setdefault(name, Exported(family.type))
        for sample in family.samples:
            labels = {key: value for key, value in sample.labels.items() if key != "le"}
            metric.labels |= labels.keys()
            if sample.name in (name, f"{name}_count"):
                metric.samples[tuple(labels[key] for key in sorted(labels))] = sample.value
    return found
