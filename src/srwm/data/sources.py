"""Where images come from: a table of the sources that are known by name."""

import difflib
from dataclasses import dataclass

from srwm.errors import InputError

from ._shown import quoted
from .splits import VALIDATION_ALPHABETS


@dataclass(frozen=True)
class Source:
    """One way to look at one set of images."""

    name: str
    """What it is called on the command line."""
    title: str
    """What it is called in print."""
    about: str
    """What it is, in a sentence."""
    licence: str
    """The terms it comes under."""
    how_to_get: str
    """What to do when its pack is not there, in words that go on after "X is not in FOLDER: "."""
    pack: str | None = None
    """Name of its pack file; None if it is drawn by this library."""
    split: str = "default"
    """Name of its split in the pack."""
    classes: tuple[int, int, int] = (0, 0, 0)
    """Classes to train on, to validate on and to test on, before rotations."""
    images_per_class: int = 0
    """How many images each class has; 0 where its official training and test images are not as many for each."""
    image_size: int = 84
    """Height and width that its images are resized to."""
    channels: int = 3
    """1 for grey, 3 for colours."""
    rotations: bool = False
    """Whether rotated images make up further classes."""
    inverted: bool = False
    """Whether black ink on white becomes white ink on black."""
    validation_groups: tuple[str, ...] = ()
    """Groups of classes held out of training for validation, where the pack's split has no such part."""


_OMNIGLOT_LICENCE = "MIT"
_CIFAR_LICENCE = "none stated; cite Krizhevsky 2009"
_IMAGENET_LICENCE = "ImageNet terms: non-commercial research and education"

_TABLE = (
    Source(
        name="omniglot",
        title="Omniglot",
        about="1623 hand-written characters of 50 alphabets, 20 drawers each; the split of Vinyals et al.",
        licence=_OMNIGLOT_LICENCE,
        how_to_get="run `srwm data fetch omniglot`",
        pack="omniglot.npz",
        split="vinyals",
        classes=(1028, 172, 423),
        images_per_class=20,
        image_size=28,
        channels=1,
        rotations=True,
        inverted=True,
    ),
    Source(
        name="omniglot-original",
        title="Omniglot, original split",
        about="Omniglot's background alphabets to learn from, five of them to validate; evaluation alphabets to test.",
        licence=_OMNIGLOT_LICENCE,
        how_to_get="run `srwm data fetch omniglot`",
        pack="omniglot.npz",
        split="original",
        classes=(792, 172, 659),
        images_per_class=20,
        image_size=28,
        channels=1,
        rotations=True,
        inverted=True,
        validation_groups=VALIDATION_ALPHABETS,
    ),
    Source(
        name="mini-imagenet",
        title="mini-ImageNet",
        about="Photographs of 100 classes of ImageNet; the split of Ravi and Larochelle.",
        licence=_IMAGENET_LICENCE,
        how_to_get=(
            "there is no dependable automatic source, so get the three files mini-imagenet-cache-train.pkl, -val.pkl "
            "(or -validation.pkl) and -test.pkl (zenodo.org/record/7978538 has them) and run `srwm data import "
            "mini-imagenet FILE FILE FILE`"
        ),
        pack="miniimagenet.npz",
        split="ravi",
        classes=(64, 16, 20),
        images_per_class=600,
    ),
    Source(
        name="fc100",
        title="FC100",
        about="CIFAR-100 split by super-class (Oreshkin et al. 2018).",
        licence=_CIFAR_LICENCE,
        how_to_get="run `srwm data fetch fc100`",
        pack="cifar100.npz",
        split="fc100",
        classes=(60, 20, 20),
        images_per_class=600,
        image_size=32,
    ),
    Source(
        name="cifar-fs",
        title="CIFAR-FS",
        about="CIFAR-100 split at random (Bertinetto et al. 2019).",
        licence=_CIFAR_LICENCE,
        how_to_get="run `srwm data fetch cifar-fs`",
        pack="cifar100.npz",
        split="cifarfs",
        classes=(64, 16, 20),
        images_per_class=600,
        image_size=32,
    ),
    Source(
        name="tiny-imagenet-100",
        title="Tiny ImageNet, 100 classes",
        about="100 classes of Tiny ImageNet, 64 x 64 scaled up to 84: a stand-in for mini-ImageNet.",
        licence=_IMAGENET_LICENCE,
        how_to_get=(
            "it may not be redistributed and no archive of it is published, so put a pack named tinyimagenet100.npz "
            "there, or import the folders of Tiny ImageNet as a set of your own with `srwm data import folder PATH "
            "--name NAME`"
        ),
        pack="tinyimagenet100.npz",
        split="fewshot",
        classes=(64, 16, 20),
        images_per_class=350,
    ),
    Source(
        name="mnist",
        title="MNIST",
        about="70,000 hand-written digits in official training and test images.",
        licence="none stated; cite LeCun et al. 1998",
        how_to_get="run `srwm data fetch mnist`",
        pack="mnist.npz",
        classes=(10, 10, 10),
        image_size=28,
        channels=1,
    ),
    Source(
        name="fashion-mnist",
        title="Fashion-MNIST",
        about="70,000 pieces of clothing in official training and test images.",
        licence="MIT",
        how_to_get="run `srwm data fetch fashion-mnist`",
        pack="fashion-mnist.npz",
        classes=(10, 10, 10),
        image_size=28,
        channels=1,
    ),
    Source(
        name="cifar-10",
        title="CIFAR-10",
        about="60,000 photographs in official training and test images.",
        licence=_CIFAR_LICENCE,
        how_to_get="run `srwm data fetch cifar-10`",
        pack="cifar10.npz",
        classes=(10, 10, 10),
        image_size=32,
    ),
    Source(
        name="strokes",
        title="Strokes",
        about="Hand-writing drawn by this library: made-up characters, re-drawn with jitter; nothing to download.",
        licence="that of this library",
        how_to_get="nothing needs to be done",
        classes=(1000, 150, 400),
        images_per_class=20,
        image_size=28,
        channels=1,
    ),
)

SOURCES = {source.name: source for source in _TABLE}
"""The sources that are known by name."""

FOLDER_PREFIX = "folder:"
"""What the name of a source begins with that is a folder of images: `folder:PATH`."""


def unknown_source(name: str, others: list[str]) -> InputError:
    """Say that there is no such source, and name the nearest one."""
    words = [*SOURCES, *others]
    nearest = difflib.get_close_matches(name.lower()[:100], words, n=1, cutoff=0.5)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else "."
    return InputError(f"there is no source {quoted(name)}{hint} The sources are {', '.join(words)} and folder:PATH")


def described_source(name: str) -> str:
    """A source of images with its licence, or its name alone where nothing is known of it."""
    source = SOURCES.get(name)
    return f"{source.title} ({source.licence})" if source is not None else name
