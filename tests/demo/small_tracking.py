"""Small networks of a language that were never trained, and a page of sequences without looks."""

import torch

from srwm.languages import LanguagesConfig, NetworkConfig, StateTracker, TaskConfig

from .small import Page

NAMES = ("small srwm <i>", "small lstm")


def small_tracker(memory="srwm", task="parity", longest=50, **options) -> StateTracker:
    torch.manual_seed(0)
    model = NetworkConfig(memory=memory, hidden_size=8, num_heads=2, num_layers=2, ff_size=8, memory_options=options)
    return StateTracker(LanguagesConfig(task=TaskConfig(name=task, longest=longest), model=model)).eval()


def small_tracking(task="parity"):
    """Two of them, and what the page calls them."""
    return [(small_tracker("srwm", task), NAMES[0]), (small_tracker("lstm", task), NAMES[1])]


class TrackingPage(Page):
    """Talks to a server as the third tab does."""

    def open(self):
        view = self.post("/api/tracking/sessions", {})
        self.session = f"/api/tracking/sessions/{view['session']}"
        return view

    def read(self, *symbols):
        return self.change("read", symbols=list(symbols))
