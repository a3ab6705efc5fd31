"""Images to learn from: where they come from, how they are kept, how they are loaded."""

from .episodes import Episodes, check_enough, draw_episodes
from .features import FeatureSet, import_features, load_features
from .image_set import ImageSet, inverted
from .load import has_official_parts, load_folder, load_images
from .pack import read_pack, write_pack
from .places import data_folder

__all__ = [
    "Episodes",
    "FeatureSet",
    "ImageSet",
    "check_enough",
    "data_folder",
    "draw_episodes",
    "has_official_parts",
    "import_features",
    "inverted",
    "load_features",
    "load_folder",
    "load_images",
    "read_pack",
    "write_pack",
]
