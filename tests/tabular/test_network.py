import math

import numpy as np
import pytest
import torch
from sklearn.neighbors import NearestCentroid

from srwm.errors import InputError
from srwm.tabular import random_projection, scale_of
from srwm.tabular.experiment import TABULAR

from .tiny import config, network


@pytest.fixture
def model():
    return network()


def draw(features=7, t=12, b=2):
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(b, t, features, generator=generator, dtype=torch.float64)
    return x, torch.randint(4, (b, t), generator=generator)


def start(model, features=7, b=2):
    generator = torch.Generator().manual_seed(2)
    return model.initial_state(random_projection(b, features, model.config.model.width, generator).double())


def close(a, b):
    return torch.allclose(a.nan_to_num(neginf=-99.0), b.nan_to_num(neginf=-99.0), atol=1e-9)


def test_reading_in_pieces_is_reading_the_whole(model):
    x, labels = draw()
    x[0, 3, 2] = math.nan
    whole, end = model(x, labels, start(model))
    first, middle = model(x[:, :5], labels[:, :5], start(model))
    second, last = model(x[:, 5:], labels[:, 5:], middle)
    assert close(torch.cat([first, second], dim=1), whole)
    assert close(model.read(x, last), model.read(x, end))


def test_a_question_is_answered_as_if_it_came_next_and_teaches_nothing(model):
    x, labels = draw()
    scores, _ = model(x, labels, start(model))
    _, middle = model(x[:, :6], labels[:, :6], start(model))
    assert close(model.read(x[:, 6:], middle)[:, :1], scores[:, 6:7])
    assert close(model.read(x[:, 6:].flip(1), middle).flip(1), model.read(x[:, 6:], middle))


def test_a_label_is_not_known_before_its_answer(model):
    x, labels = draw()
    other = labels.clone()
    other[:, 7] = (other[:, 7] + 1) % 4
    scores, changed = (model(x, each, start(model))[0] for each in (labels, other))
    assert close(scores[:, :8], changed[:, :8])
    assert not close(scores[:, 8:], changed[:, 8:])


def test_scale_and_place_of_features_do_not_matter(model):
    x, labels = draw()
    moved = x * torch.tensor([1e-3, 5.0, 1e4, 1.0, 2.0, 0.5, 9.0]) + 3.0
    assert torch.allclose(*(model(each, labels, start(model))[0][:, 6:, :4] for each in (x, moved)), atol=1e-5)


def test_classes_that_have_not_been_seen_are_ruled_out(model):
    x, labels = draw()
    scores, _ = model(x, labels, start(model))
    for t in range(1, x.shape[1]):
        for row in range(len(x)):
            seen = set(labels[row, :t].tolist())
            assert {c for c in range(5) if scores[row, t, c] > -math.inf} == seen


def test_a_feature_that_never_changes_says_nothing(model):
    x, labels = draw()
    constant = torch.cat([x, torch.full_like(x[..., :1], 7.0)], dim=2)
    state = start(model)
    wider = torch.cat([state.projection, torch.ones_like(state.projection[:, :1])], dim=1)
    assert close(model(constant, labels, model.initial_state(wider))[0], model(x, labels, state)[0])


def test_it_scores_nearest_mean_as_scikit_learn_does(model):
    x, labels = draw(t=40, b=1)
    scale = scale_of(x[0, :20])
    state = model.initial_state(start(model, b=1).projection, type(scale)(scale.mean[None], scale.deviation[None]))
    _, state = model(x[:, :20], labels[:, :20], state)
    z = ((x[0] - scale.mean) / scale.deviation).numpy()
    wanted = NearestCentroid().fit(z[:20], labels[0, :20].numpy()).predict(z[20:])
    assert np.array_equal(model.nearest_mean(x[:, 20:], None, state).argmax(dim=-1)[0].numpy(), wanted)


@pytest.mark.parametrize("features", [2, 4, 11])
def test_projections_keep_distances_up_to_the_width_and_scale_beyond(features):
    projection = random_projection(3, features, 4, torch.Generator().manual_seed(0))
    gram = projection @ projection.mT * features / 4
    assert torch.allclose(gram.diagonal(dim1=1, dim2=2), torch.ones(3, features), atol=1e-5)
    if features <= 4:
        assert torch.allclose(gram, torch.eye(features).expand_as(gram), atol=1e-5)


def test_a_network_that_cannot_be_built_is_refused_with_a_sentence():
    with pytest.raises(InputError, match=r"the model cannot be built: .*num_heads"):
        TABULAR.build(config(model={"num_heads": 3}), {})
