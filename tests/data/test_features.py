import numpy as np
import pytest
import torch

from srwm.cli import main
from srwm.data import draw_episodes, import_features, load_features
from srwm.errors import InputError


@pytest.fixture
def arrays():
    rng = np.random.default_rng(0)
    return {"features": rng.normal(size=(60, 5)).astype(np.float32), "labels": np.arange(60) % 12}


def save(path, **arrays):
    np.savez(path, **arrays)
    return path


@pytest.mark.parametrize("kind", ["npz", "npy", "other names"])
def test_features_come_back_class_by_class(tmp_path, arrays, kind):
    paths = [tmp_path / "a.npz"]
    if kind == "npy":
        paths = [tmp_path / "x.npy", tmp_path / "y.npy"]
        for path, array in zip(paths, arrays.values(), strict=True):
            np.save(path, array)
    else:
        renamed = dict(zip(("x", "y"), arrays.values(), strict=True)) if kind == "other names" else arrays
        save(paths[0], **renamed)
    assert import_features(paths, "mine", tmp_path / "data") == tmp_path / "data/features/mine.npz"
    parts = [load_features("mine", split, folder=tmp_path / "data") for split in ("train", "validation", "test")]
    assert sorted(name for part in parts for name in part.class_names) == sorted(str(c) for c in range(12))
    for part in parts:
        for name, start, count in zip(part.class_names, part.starts, part.counts, strict=True):
            wanted = arrays["features"][arrays["labels"] == int(name)]
            assert np.array_equal(part.features[start : start + count].numpy(), wanted)


def test_the_split_can_be_given(tmp_path, arrays):
    words = np.array(["train", "validation", "test"])[arrays["labels"] % 3]
    import_features([save(tmp_path / "a.npz", **arrays, split=words)], "mine", tmp_path)
    assert load_features("mine", "test", folder=tmp_path).class_names == ("11", "2", "5", "8")


def test_episodes_are_drawn_from_them_as_from_images(tmp_path, arrays):
    import_features([save(tmp_path / "a.npz", **arrays)], "mine", tmp_path)
    features = load_features(str(tmp_path / "features/mine.npz"), "train")
    drawn = draw_episodes(features, torch.tensor(0), batch_size=2, ways=3, shots=2, queries=3, seed=0)
    assert features.features[drawn.support].shape == (2, 6, 5)


BAD = {
    "has no array 'labels'": {"labels": None},
    r"the features of .* are float32 \[60\]; expected numbers \[n, f\]": {"features": np.zeros(60, np.float32)},
    r"the labels of .* expected whole numbers or words \[60\]": {"labels": np.zeros(59, int)},
    "hold NaN or infinite numbers": {"features": np.full((60, 2), np.nan)},
    "numbers beyond those of float32": {"features": np.full((60, 2), 1e300)},
    "has 2 classes; expected at least 3": {"labels": np.arange(60) % 2},
    "is not one of train, validation, test for each": {"split": np.array(["train"] * 59 + ["other"])},
    "class '0' of .* is in two parts": {"split": np.array(["train"] * 12 + ["test"] * 48)},
}


@pytest.mark.parametrize("sentence", BAD)
def test_bad_features_get_a_sentence_and_leave_nothing(tmp_path, arrays, sentence):
    changed = {name: array for name, array in {**arrays, **BAD[sentence]}.items() if array is not None}
    with pytest.raises(InputError, match=sentence):
        import_features([save(tmp_path / "a.npz", **changed)], "mine", tmp_path / "data")
    assert not (tmp_path / "data").exists()


def test_what_is_no_pack_of_features_is_refused(tmp_path, arrays):
    with pytest.raises(InputError, match=r"there is no pack of features 'mine' in .*; there is none yet"):
        load_features("mine", "train", folder=tmp_path)
    path = save(tmp_path / "a.npz", **arrays)
    with pytest.raises(InputError, match="is no pack of features: it lacks counts, class_name, split"):
        load_features(str(path), "train")
    with pytest.raises(InputError, match="expected one of train, validation, test"):
        load_features("mine", "all", folder=tmp_path)


def test_pickles_are_not_read(tmp_path):
    np.save(tmp_path / "x.npy", np.array([{}], dtype=object))
    with pytest.raises(InputError, match=r"x\.npy is no sound \.npy file"):
        import_features([tmp_path / "x.npy", tmp_path / "x.npy"], "mine", tmp_path)


def test_the_command_imports_and_lists_them(tmp_path, arrays, capsys):
    path = save(tmp_path / "a.npz", **arrays)
    data = ["--data", str(tmp_path / "data")]
    assert main(["data", "import", "features", str(path), *data]) == 2
    assert "feature vectors need a name: add --name NAME" in capsys.readouterr().err
    assert main(["data", "import", "features", str(path), "--name", "mine", *data]) == 0
    assert main(["data", "list", *data]) == 0
    assert "packs of features: mine" in capsys.readouterr().out
