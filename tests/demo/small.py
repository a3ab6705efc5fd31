"""A small network that was never trained, drawings for it, and a page without looks."""

import http.client
import json

import numpy as np
import torch

from srwm.fewshot import FewShotConfig, FewShotModel, FewShotTaskConfig, ModelConfig

NAME = "small <script>alert(1)</script>"
WAYS = 5
SIZE = 20
SHAPE = (1, SIZE, SIZE)

CROSS = [[[0.3, 0.3], [0.7, 0.7]], [[0.7, 0.3], [0.3, 0.7]]]
RING = [[[0.5 + 0.25 * float(np.cos(a)), 0.5 + 0.25 * float(np.sin(a))] for a in np.linspace(0, 6.28, 20)]]
HOOK = [[[0.3, 0.25], [0.3, 0.7], [0.7, 0.7]]]
ROOF = [[[0.25, 0.65], [0.5, 0.3], [0.75, 0.65]]]
WAVE = [[[0.2, 0.5], [0.35, 0.35], [0.5, 0.5], [0.65, 0.65], [0.8, 0.5]]]
STROKES = (CROSS, RING, HOOK, ROOF, WAVE)


def small_model(source="strokes", **model) -> FewShotModel:
    torch.manual_seed(0)
    config = FewShotConfig(
        task=FewShotTaskConfig(source=source, ways=WAYS, image_size=SIZE, channels=1),
        # Labels and self-modification are loud, so that what was taught shows in the answers.
        model=ModelConfig(
            encoder_channels=8, hidden_size=16, num_heads=2, ff_size=16, feature_norm=True, label_scale=8.0, **model
        ),
    )
    return FewShotModel(config, in_channels=1, image_size=SIZE)


class Page:
    """Talks to a server as the page does."""

    def __init__(self, port):
        self.port = port
        self.session = None

    def send(self, method, path, body=None, headers=None):
        """Send a request; give the status, the headers and what came back, as JSON where it is such."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            if body is not None and not isinstance(body, bytes):
                body = json.dumps(body).encode()
                headers = {"content-type": "application/json", **(headers or {})}
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            data = response.read()
        finally:
            connection.close()
        is_json = response.headers["content-type"] == "application/json"
        return response.status, response.headers, json.loads(data) if is_json else data

    def get(self, path):
        status, _, content = self.send("GET", path)
        assert status == 200, content
        return content

    def post(self, path, body):
        status, _, content = self.send("POST", path, body)
        assert status == 200, content
        return content

    def open(self):
        view = self.post("/api/sessions", {})
        self.session = f"/api/sessions/{view['session']}"
        return view

    def change(self, verb, **body):
        return self.post(f"{self.session}/{verb}", body)

    def refused(self, verb, body):
        """Send what must be refused; give the status and the sentence."""
        status, _, content = self.send("POST", f"{self.session}/{verb}", body)
        assert set(content) == {"error"}
        return status, content["error"]

    def teach(self, label, strokes=None):
        return self.change("teach", label=label, drawing={"strokes": strokes or STROKES[label]})

    def predict(self, strokes=HOOK, time=None, label=None):
        time = len(self.get(self.session)["examples"]) if time is None else time
        return self.change("predict", drawing={"strokes": strokes}, time=time, label=label)
