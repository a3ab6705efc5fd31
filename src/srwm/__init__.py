"""Self-referential weight matrices: networks that modify their own weights while they run.

`srwm.ops` holds the recurrences as functions of tensors, `srwm.nn` the layers built on them, `srwm.vision`
encoders of images, `srwm.data` images to learn from, `srwm.fewshot`, `srwm.sequential` and `srwm.rl` the three
experiments of the paper, `srwm.continual` learning task after task, `srwm.languages` state tracking,
`srwm.tabular` feature vectors of any kind, `srwm.estimators` classifiers for scikit-learn and River,
`srwm.supervised` what trainings on labelled images share, `srwm.runs` what every training has in common, `srwm.hub`
models in repositories of the Hugging Face Hub, and `srwm.inspect`, `srwm.report`, `srwm.video` and `srwm.demo` ways to
see it. Import what you use, for example
`from srwm.nn import SelfReferentialLinear`; kernels and plots load only when they are needed.

Paper: "A Modern Self-Referential Weight Matrix That Learns to Modify Itself", Irie, Schlag, Csordás and Schmidhuber,
ICML 2022.
"""

from typing import TYPE_CHECKING, Literal, overload

if TYPE_CHECKING:
    from pathlib import Path

    from srwm.continual import ContinualModel
    from srwm.fewshot import FewShotModel
    from srwm.languages import StateTracker
    from srwm.sequential import StreamModel
    from srwm.tabular import TabularModel

__all__ = ["__version__", "load"]

__version__ = "0.2.0"


@overload
def load(name: Literal["omniglot-1shot"], *, device: str = ...) -> "FewShotModel": ...


@overload
def load(name: Literal["tabular"], *, device: str = ...) -> "TabularModel": ...


@overload
def load(name: Literal["parity-srwm", "parity-deltanet"], *, device: str = ...) -> "StateTracker": ...


@overload
def load(
    name: "str | Path", *, device: str = ...
) -> "FewShotModel | StreamModel | ContinualModel | TabularModel | StateTracker": ...


def load(
    name: "str | Path", *, device: str = "cpu"
) -> "FewShotModel | StreamModel | ContinualModel | TabularModel | StateTracker":
    """Load a trained model, such as one that learns new classes while it runs.

    Args:
        name: a model that comes with the package (`srwm models` lists them); the folder of a run on few-shot episodes,
            on tasks one after the other, on streams, or on languages; or the address of a model on the Hugging Face
            Hub, `hf:owner/name`, where `@REVISION` may name a branch, a tag or a commit, and `#sha256=DIGEST` pin the
            files.
        device: where to put it.

    Returns:
        A few-shot model or one of continual learning, with `learn(images, labels, state)` and `predict(images, state)`,
        or a model of streams, with `observe(image, previous_label, state)`; `srwm.live.LiveStream` keeps the
        state and the labels; or a model of feature vectors, which `srwm.tabular.Ensemble` and the classifiers of
        `srwm.estimators` use; or one that reads symbols and answers at each, `scores, state = model(symbols, state)`.

    Raises:
        InputError: if there is no such model.
        RunError: if it cannot be downloaded, or not as it should be.
    """
    from srwm.errors import InputError
    from srwm.runs.model_files import kind_of
    from srwm.runs.shipped import find_model

    name = find_model(name)
    kind = kind_of(name)
    if kind == "continual":
        from srwm.continual import load_continual_model

        return load_continual_model(name, device)
    if kind == "sequential":
        from srwm.sequential import load_stream_model

        return load_stream_model(name, device)
    if kind == "tabular":
        from srwm.tabular import load_tabular

        return load_tabular(name, device)
    if kind == "reinforcement-learning":
        raise InputError(
            f"{name.name} is an agent that plays games: `srwm watch` films it, srwm.rl.loading.load_agent loads it"
        )
    if kind == "languages":
        from srwm.languages import load_tracker

        return load_tracker(name, device)
    from srwm.fewshot import load_model

    return load_model(name, device=device)
