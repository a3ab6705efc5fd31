import pytest
import torch
from PIL import ImageColor

from srwm.data.sheet import contact_sheet, episode_sheet
from srwm.errors import InputError

GREEN, RED, WHITE = (ImageColor.getrgb(colour) for colour in ("#1a7f37", "#cf222e", "#ffffff"))
GREY = (90, 90, 90)


def grey(size=10, level=90):
    return torch.full((1, size, size), level, dtype=torch.uint8)


def pixels(sheet):
    """The sheet as a tensor, [height, width, 3]."""
    return torch.frombuffer(bytearray(sheet.tobytes()), dtype=torch.uint8).reshape(sheet.height, sheet.width, 3)


def places(sheet, colour):
    """Rows and columns of the pixels of a colour, [n, 2]."""
    return (pixels(sheet) == torch.tensor(colour, dtype=torch.uint8)).all(dim=2).nonzero()


def box(sheet, colour):
    found = places(sheet, colour)
    return (found.amax(dim=0) - found.amin(dim=0) + 1).tolist()


def test_images_are_enlarged_without_smoothing_and_shown_as_stored():
    image = torch.randint(0, 256, (1, 5, 4), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    sheet = pixels(contact_sheet([[image]], scale=3))
    inner = sheet[12:-12, 12:-12]
    assert inner.shape == (15, 12, 3)
    assert torch.equal(inner[::3, ::3], image[0, :, :, None].expand(-1, -1, 3))
    assert torch.equal(inner[1::3, 2::3], inner[::3, ::3])


def test_colours_are_kept():
    image = torch.tensor([200, 30, 7], dtype=torch.uint8)[:, None, None].expand(3, 6, 6)
    assert len(places(contact_sheet([[image]], scale=2), (200, 30, 7))) == 144


def test_sizes_channels_and_row_lengths_may_be_mixed():
    wide = torch.full((3, 4, 30), 91, dtype=torch.uint8)
    sheet = contact_sheet([[grey(10), wide, grey(20, 92)], [], [grey(12, 93)]], scale=1)
    for level, count in ((90, 100), (91, 120), (92, 400), (93, 144)):
        assert len(places(sheet, (level,) * 3)) == count


def test_images_of_a_row_stand_side_by_side_and_rows_below_each_other():
    sheet = contact_sheet([[grey(level=1), grey(level=2)], [grey(level=3), grey(level=4)]], scale=1)
    corner = [places(sheet, (level,) * 3).amin(dim=0).tolist() for level in (1, 2, 3, 4)]
    assert corner[0][0] == corner[1][0] < corner[2][0] == corner[3][0]
    assert corner[0][1] == corner[2][1] < corner[1][1] == corner[3][1]


def test_titles_and_captions_add_ink_in_their_places():
    plain = contact_sheet([[grey()]], scale=2)
    titled = contact_sheet([[grey()]], row_titles=["cat"], scale=2)
    captioned = contact_sheet([[grey()]], captions=[["cat"]], scale=2)
    assert titled.width > plain.width
    assert titled.height == plain.height
    assert captioned.height > plain.height
    left = places(titled, GREY)[:, 1].min()
    assert (pixels(titled)[:, :left] < 128).any()
    below = places(captioned, GREY)[:, 0].max() + 1
    assert (pixels(captioned)[below:] < 128).any()


def test_a_title_of_several_lines_has_room():
    one = contact_sheet([[grey()]], row_titles=["a"], scale=1)
    five = contact_sheet([[grey()]], row_titles=["a\nb\nc\nd\ne"], scale=1)
    assert five.height > one.height + 40


def test_long_words_are_cut_to_their_place():
    long, longer = (contact_sheet([[grey()]], captions=[["w" * n]], row_titles=["m" * n]) for n in (100, 1000))
    assert long.size == longer.size
    assert long.width < 400


def test_a_right_frame_is_green_and_whole_and_a_wrong_one_red_and_dashed():
    sheets = {mark: contact_sheet([[grey()]], marks=[[mark]], scale=3) for mark in ("right", "wrong", "none")}
    assert len({sheet.size for sheet in sheets.values()}) == 1
    right, wrong = places(sheets["right"], GREEN), places(sheets["wrong"], RED)
    assert box(sheets["right"], GREEN) == box(sheets["wrong"], RED) == [40, 40]
    # Without colour too: gaps in one frame only.
    assert 0.4 * len(right) < len(wrong) < 0.75 * len(right)
    assert len(right) == 40 * 40 - 34 * 34
    assert len(places(sheets["none"], WHITE)) == sheets["none"].width * sheets["none"].height - 900


def test_frames_leave_the_image_whole():
    for mark in ("right", "wrong"):
        assert len(places(contact_sheet([[grey()]], marks=[[mark]], scale=3), GREY)) == 900


def test_an_episode_shows_all_images_and_marks_each_query():
    support = torch.full((5, 1, 10, 10), 90, dtype=torch.uint8)
    query = torch.full((3, 1, 10, 10), 91, dtype=torch.uint8)
    sheet = episode_sheet(support, [4, 3, 2, 1, 0], query, [0, 1, 2], [0, 1, 4], scale=3)
    assert len(places(sheet, GREY)) == 5 * 900
    assert len(places(sheet, (91, 91, 91))) == 3 * 900
    assert len(places(sheet, GREEN)) == 2 * (40 * 40 - 34 * 34)
    assert box(sheet, RED)[1] >= 40


def test_a_long_episode_goes_on_in_further_rows():
    images = torch.full((25, 1, 10, 10), 90, dtype=torch.uint8)
    labels = [i % 5 for i in range(25)]
    short = episode_sheet(images[:10], labels[:10], images[:10], labels[:10], labels[:10])
    long = episode_sheet(images, labels, images, labels, labels)
    assert long.width == short.width
    assert len(places(long, GREY)) == 50 * 900


def test_label_names_stand_below_the_images():
    images, labels = torch.full((2, 1, 10, 10), 90, dtype=torch.uint8), [0, 1]
    numbers = episode_sheet(images, labels, images, labels, labels)
    names = episode_sheet(images, labels, images, labels, labels, label_names=["0", "1"])
    words = episode_sheet(images, labels, images, labels, labels, label_names=["cat", "dog"])
    assert numbers.tobytes() == names.tobytes() != words.tobytes()


def test_equal_sheets_have_equal_bytes():
    first, second = (contact_sheet([[grey()]], captions=[["a"]], marks=[["wrong"]]) for _ in range(2))
    assert first.tobytes() == second.tobytes()


@pytest.mark.usefixtures("as_installed")
@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ([], {}, "a contact sheet needs at least one image"),
        ([[], []], {}, "a contact sheet needs at least one image"),
        ([[grey()]], {"scale": 0}, "scale=0; expected at least 1"),
        ([[grey()]], {"row_titles": ["a", "b"]}, "2 row_titles for 1 rows"),
        ([[grey()]], {"captions": [["a", "b"]]}, "captions do not match the images"),
        ([[grey()]], {"marks": []}, "marks do not match the images"),
        ([[grey()]], {"marks": [["good"]]}, "mark 'good'; expected one of 'right', 'wrong', 'none'"),
        ([[torch.zeros(2, 3, 3, dtype=torch.uint8)]], {}, "an image is torch.uint8 [2, 3, 3]; expected"),
        ([[torch.zeros(1, 3, 3)]], {}, "an image is torch.float32 [1, 3, 3]; expected"),
        ([[torch.zeros(3, 3, dtype=torch.uint8)]], {}, "an image is torch.uint8 [3, 3]; expected"),
        ([[torch.zeros(1, 0, 3, dtype=torch.uint8)]], {}, "an image is torch.uint8 [1, 0, 3]; expected"),
    ],
)
def test_what_cannot_be_laid_out_is_refused_in_a_sentence(rows, options, message):
    with pytest.raises(InputError) as caught:
        contact_sheet(rows, **options)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("labels", "truths", "guesses", "names", "message"),
    [
        ([0], [0, 1], [0, 1], None, "1 support_labels for 2 images"),
        ([0, 1], [0], [0, 1], None, "1 query_labels for 2 images"),
        ([0, 1], [0, 1], [0, 1, 1], None, "3 predictions for 2 images"),
        ([0, 1], [0, 1], [0, 2], ["cat", "dog"], "label 2 has no name; 2 names came"),
        ([0, 1], [0, 1], [0, -1], ["cat", "dog"], "label -1 has no name"),
    ],
)
def test_an_episode_that_does_not_add_up_is_refused_in_a_sentence(labels, truths, guesses, names, message):
    images = torch.zeros(2, 1, 4, 4, dtype=torch.uint8)
    with pytest.raises(InputError) as caught:
        episode_sheet(images, labels, images, truths, guesses, label_names=names)
    assert str(caught.value).startswith(message)
