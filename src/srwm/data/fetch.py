"""`srwm data fetch` and `srwm data import`: from what others publish to packs in the data folder."""

from collections.abc import Sequence
from pathlib import Path

from srwm.errors import InputError

from .convert import Report, convert_cifar100, convert_folder, convert_mini_imagenet, convert_omniglot
from .download import Remote, download
from .official_parts import convert_cifar10, convert_fashion_mnist, convert_mnist
from .pack import Pack, read_pack, write_pack
from .places import check_name
from .procgen import NAME as PROCGEN
from .sources import SOURCES, unknown_source
from .verify import problems_of_numbers

_OMNIGLOT = "https://github.com/brendenlake/omniglot/raw/master/python"
# The page of its authors gives out no files any more; these are theirs, bit for bit.
_MNIST = "https://storage.googleapis.com/cvdf-datasets/mnist"
_FASHION_MNIST = "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion"
ARCHIVES: dict[str, tuple[Remote, ...]] = {
    "omniglot.npz": (
        Remote(
            f"{_OMNIGLOT}/images_background.zip",
            9_464_212,
            "sha256:ad41ab679c8b5d90b271ef46be6987cc81211774a695c29dcc5367b2b26ee640",
        ),
        Remote(
            f"{_OMNIGLOT}/images_evaluation.zip",
            6_462_886,
            "sha256:1f61a8f3366785b057fc117d9228e78a16e3d976c8953b2a10fcc74cf0609cee",
        ),
    ),
    "cifar100.npz": (
        Remote(
            "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz",
            169_001_437,
            "sha256:85cd44d02ba6437773c5bbd22e183051d648de2e7d6b014e1ef29b855ba677a7",
        ),
    ),
    "cifar10.npz": (
        Remote(
            "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
            170_498_071,
            "sha256:6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
        ),
    ),
    "mnist.npz": (
        Remote(
            f"{_MNIST}/train-images-idx3-ubyte.gz",
            9_912_422,
            "sha256:440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        ),
        Remote(
            f"{_MNIST}/train-labels-idx1-ubyte.gz",
            28_881,
            "sha256:3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        ),
        Remote(
            f"{_MNIST}/t10k-images-idx3-ubyte.gz",
            1_648_877,
            "sha256:8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        ),
        Remote(
            f"{_MNIST}/t10k-labels-idx1-ubyte.gz",
            4_542,
            "sha256:f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        ),
    ),
    "fashion-mnist.npz": (
        Remote(
            f"{_FASHION_MNIST}/train-images-idx3-ubyte.gz",
            26_421_880,
            "sha256:3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
        ),
        Remote(
            f"{_FASHION_MNIST}/train-labels-idx1-ubyte.gz",
            29_515,
            "sha256:a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
        ),
        Remote(
            f"{_FASHION_MNIST}/t10k-images-idx3-ubyte.gz",
            4_422_102,
            "sha256:346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
        ),
        Remote(
            f"{_FASHION_MNIST}/t10k-labels-idx1-ubyte.gz",
            5_148,
            "sha256:67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
        ),
    ),
}
"""The official archives that each pack is made of."""

_CONVERTERS = {
    "omniglot.npz": convert_omniglot,
    "cifar100.npz": convert_cifar100,
    "cifar10.npz": convert_cifar10,
    "mnist.npz": convert_mnist,
    "fashion-mnist.npz": convert_fashion_mnist,
}


def fetch(name: str, folder: Path, report: Report, *, again: bool = False, keep_archives: bool = False) -> Path | None:
    """Download a source's archives, check them and make its pack.

    Args:
        name: a source of the table.
        folder: the data folder.
        report: is told what is being done.
        again: fetch a pack that is there already.
        keep_archives: keep the archives once the pack is made.

    Returns:
        The pack; None if the source needs none.

    Raises:
        InputError: the source is unknown or cannot be fetched.
        RunError: the download failed, or its result could not be written.
    """
    if name not in SOURCES:
        raise unknown_source(name, [PROCGEN])
    source = SOURCES[name]
    if source.pack is None:
        return None
    path = folder / source.pack
    if source.pack not in ARCHIVES:
        raise InputError(f"{name} cannot be fetched: {source.how_to_get}")
    if path.is_file() and not again:
        try:
            _check_numbers(read_pack(path))
        except InputError as error:
            raise InputError(f"{error}; `srwm data fetch {name} --again` replaces it") from error
        report(f"{path} is there already")
        return path
    # A folder for each pack: the files of MNIST and of Fashion-MNIST have the same names.
    downloads = folder / "downloads" / path.stem
    archives = [download(remote, downloads) for remote in ARCHIVES[source.pack]]
    _save(_CONVERTERS[source.pack](archives, path, report), report)
    if not keep_archives:
        for archive in archives:
            archive.unlink(missing_ok=True)
    return path


def import_mini_imagenet(caches: Sequence[Path], folder: Path, report: Report) -> Path:
    """Make mini-ImageNet's pack of its three published caches.

    Raises:
        InputError: they are not what was published.
    """
    return _save(convert_mini_imagenet(caches, folder / "miniimagenet.npz", report), report)


def import_folder(images: Path, name: str, folder: Path, report: Report) -> Path:
    """Make a pack of a folder of images; afterwards `name` is a source like any other.

    Raises:
        InputError: the name cannot be used, or the folder holds no classes of images.
    """
    check_name(name)
    return _save(convert_folder(images, folder / f"{name}.npz", report), report)


def _save(pack: Pack, report: Report) -> Path:
    _check_numbers(pack)
    report(f"writing {pack.path}")
    write_pack(pack)
    return pack.path


def _check_numbers(pack: Pack) -> None:
    problems = problems_of_numbers(pack)
    if problems:
        raise InputError(problems[0])
