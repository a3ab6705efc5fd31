"""`srwm export`: a run's best model as a folder of its own, with its card."""

import json

import torch

from srwm import load

from .test_cli import images, run, train, trained  # noqa: F401 - fixtures


def test_an_exported_model_answers_as_its_run_does(images, tmp_path, capsys):  # noqa: F811
    assert train(images, tmp_path / "run", capsys)[0] == 0
    status, out, _ = run(["export", tmp_path / "run", tmp_path / "model"], capsys)
    assert (status, out.strip()) == (0, str(tmp_path / "model"))
    one, other = load(tmp_path / "run"), load(tmp_path / "model")
    pictures = torch.randint(256, (5, 16, 16), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    answers = [each.predict(pictures[3:], each.learn(pictures[:3], torch.tensor([0, 1, 2]))) for each in (one, other)]
    assert torch.equal(*answers)
    assert one.config == other.config


def test_the_card_says_what_was_measured_on_what(images, tmp_path, capsys):  # noqa: F811
    assert train(images, tmp_path / "run", capsys)[0] == 0
    assert run(["export", tmp_path / "run", tmp_path / "model", "--half", "--licence", "CC0-1.0"], capsys)[0] == 0
    card = (tmp_path / "model" / "README.md").read_text()
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    for words in (
        f"{result['test']['accuracy']:.2%}",
        "20 episodes",
        "CC0-1.0",
        "rounded to 16 bits",
        str(images),
        '"encoder_channels": 4',
    ):
        assert words in card
    sizes = [path.stat().st_size for path in (tmp_path / "model").glob("*.safetensors")]
    assert len(sizes) == 1
    assert json.loads((tmp_path / "model" / "model.json").read_text())["measured"] == result


def test_a_run_without_a_test_and_a_folder_with_a_model_are_refused(trained, tmp_path, capsys):  # noqa: F811
    status, _, err = run(["export", trained, tmp_path / "model"], capsys)
    assert status == 2
    assert "has not been tested yet" in err
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "model.json").write_text("{}")
    (trained / "result.json").write_text('{"test": {"accuracy": 1.0}}')
    status, _, err = run(["export", trained, tmp_path / "model"], capsys)
    assert status == 2
    assert "already holds a model" in err
    (trained / "result.json").unlink()
