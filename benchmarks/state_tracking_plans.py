"""What `benchmarks/state_tracking.py` trains: lists of runs, by name.

Settings are searched for with seeds (10 and up) that the tables do not use, and judged by the lengths of the training
and twice those alone.
"""

from collections.abc import Callable, Sequence

from state_tracking_improved import counting_as_published, improved, noise
from state_tracking_runs import BINS, MEMORIES, Run, by_recipe, runs

_NO_CLIP = "optimizer.clip_norm=none"
_PAPER_ADAM = f"{_NO_CLIP} optimizer.beta2=0.995 optimizer.eps=1e-9"
_DECAY = "optimizer.decay_steps=2000"


def speed(seeds: Sequence[int] | None) -> list[Run]:
    """One run of each memory on parity; alone with `--processes 1 --side-by-side 1`."""
    return [
        run
        for memory in MEMORIES
        for run in runs(f"parity{memory}", {"speed": "train.total_steps=2000"}, seeds or (0,), common=BINS)
    ]


def parity(seeds: Sequence[int] | None) -> list[Run]:
    """The paper's rule on parity: which setting holds with every seed within 2,000 steps?"""
    settings = {
        "base": "",
        "no clip": _NO_CLIP,
        "paper Adam": _PAPER_ADAM,
        "rate 2e-3": "optimizer.learning_rate=0.002",
        "rate 5e-4": "optimizer.learning_rate=0.0005",
        "decay 500": "optimizer.decay_steps=500",
        "rate 2e-3, decay 1000": "optimizer.learning_rate=0.002 optimizer.decay_steps=1000",
        "rate 3e-3, warm 200, decay 1000": (
            "optimizer.learning_rate=0.003 optimizer.warmup_steps=200 optimizer.decay_steps=1000"
        ),
        "warm 300": "optimizer.warmup_steps=300",
        "clip 0.1": "optimizer.clip_norm=0.1",
        "batch 128": "train.batch_size=128",
        "batch 256": "train.batch_size=256",
        "2 heads": "model.num_heads=2",
        "8 heads": "model.num_heads=8",
        "own lengths": "task.same_length=false",
        "own lengths, batch 128, no clip": f"task.same_length=false train.batch_size=128 {_NO_CLIP}",
        "unit keys": "model.memory_options.key_map=l2",
        "norm input": "model.memory_options.norm=input",
    }
    looks = (500, 1000, 1500)
    common = f"train.total_steps=2000 {BINS}"
    return runs("parity-srwm", settings, seeds or (10, 11, 12, 13), looks=looks, common=common)


def counting(seeds: Sequence[int] | None) -> list[Run]:
    """Counting: which setting of the paper's rule, and of the gated one, is right at twice the lengths?"""
    none = f"{_PAPER_ADAM} model.memory_options.norm=none"
    settings = {
        "clip": "",
        "no clip": _NO_CLIP,
        "paper Adam": _PAPER_ADAM,
        "paper Adam, decay": f"{_PAPER_ADAM} {_DECAY}",
        "norm none": none,
        "norm none, decay": f"{none} {_DECAY}",
        "norm none, clip": "model.memory_options.norm=none",
        "norm none, rate 3e-3, decay": f"{none} {_DECAY} optimizer.learning_rate=0.003",
        "norm none, rate 3e-4": f"{none} optimizer.learning_rate=0.0003",
        "norm none, rate 1e-4": f"{none} optimizer.learning_rate=0.0001",
        "norm none, 8 heads": f"{none} model.num_heads=8",
        "norm none, 2 heads": f"{none} model.num_heads=2",
        "norm none, 1 layer": f"{none} model.num_layers=1",
        "norm none, 1 layer, 8 heads": f"{none} model.num_layers=1 model.num_heads=8",
        "norm none, 1 layer, 1 head": f"{none} model.num_layers=1 model.num_heads=1",
        "norm none, 1 layer, rate 3e-4": f"{none} model.num_layers=1 optimizer.learning_rate=0.0003",
        "norm none, 1 layer, width 16, 2 heads": (
            f"{none} model.num_layers=1 model.hidden_size=16 model.ff_size=32 model.num_heads=2"
        ),
        "norm none, width 128": f"{none} model.hidden_size=128 model.ff_size=256 model.num_heads=8",
        "norm none, unit keys": f"{none} model.memory_options.key_map=l2",
        "norm none, beta 0": f"{none} model.memory_options.beta_init=0 model.memory_options.query_init_scale=1",
        "norm none, beta -3": f"{none} model.memory_options.beta_init=-3",
        "norm none, one batch one length": f"{none} task.same_length=true",
        "norm none, batch 256": f"{none} train.batch_size=256",
        "norm input": f"{_PAPER_ADAM} model.memory_options.norm=input",
        "paper Adam, 8 heads": f"{_PAPER_ADAM} model.num_heads=8",
        "paper Adam, 1 layer": f"{_PAPER_ADAM} model.num_layers=1",
    }
    gated = {
        "paper Adam": _PAPER_ADAM,
        "norm none": none,
        "norm none, 4 heads": f"{none} model.num_heads=4",
        "norm none, little forgetting": (
            f"{none} model.memory_options.forget_min=0 model.memory_options.forget_max=0.001"
        ),
        "norm none, may forget nothing": f"{none} model.memory_options.forget_min=0",
    }
    lstm = {
        "paper Adam": _PAPER_ADAM,
        "rate 3e-3, decay": f"{_PAPER_ADAM} {_DECAY} optimizer.learning_rate=0.003",
        "1 layer": f"{_PAPER_ADAM} model.num_layers=1",
    }
    long = {
        "norm none, long": f"{none} train.total_steps=20000",
        "paper Adam, long": f"{_PAPER_ADAM} train.total_steps=20000",
    }
    found = []
    for seed in seeds or (10, 11):
        common = f"train.total_steps=6000 {BINS}"
        options = {"looks": (1000, 3000), "look_lengths": ("2-50", "51-100"), "common": common}
        found += runs("anbn-srwm", long, (seed,), **options)
        for task in ("anbn", "anbncn", "shuffle-2"):
            found += runs(f"{task}-srwm", settings, (seed,), **options)
            found += runs(task, gated, (seed,), **options)
            found += runs(f"{task}-lstm", lstm, (seed,), **options)
    return found


def s3(seeds: Sequence[int] | None) -> list[Run]:
    """Products of six elements, trained on up to 16: which setting is right at 64 and 256?"""
    length = "task.longest=16 task.test_lengths=2-16,17-32,64,256,1000 train.total_steps=6000"
    settings = {
        "decay": _DECAY,
        "paper Adam, decay": f"{_PAPER_ADAM} {_DECAY}",
        "16 alone, decay": f"{_DECAY} task.shortest=16",
        "rate 2e-3, decay": f"{_DECAY} optimizer.learning_rate=0.002",
        "rate 5e-4, decay": f"{_DECAY} optimizer.learning_rate=0.0005",
        "batch 256, decay": f"{_DECAY} train.batch_size=256",
        "width 128, decay": f"{_DECAY} model.hidden_size=128 model.ff_size=256 model.num_heads=8",
        "unit keys, decay": f"{_DECAY} model.memory_options.key_map=l2",
        "8 heads, decay": f"{_DECAY} model.num_heads=8",
        "2 heads, decay": f"{_DECAY} model.num_heads=2",
    }
    gated = {
        "decay": _DECAY,
        "paper Adam, decay": f"{_PAPER_ADAM} {_DECAY}",
        "rate 2e-3, decay": f"{_DECAY} optimizer.learning_rate=0.002",
        "4 heads, decay": f"{_DECAY} model.num_heads=4",
        "batch 256, decay": f"{_DECAY} train.batch_size=256",
    }
    found = []
    for seed in seeds or (10, 11):
        options = {"looks": (2000, 4000), "look_lengths": ("2-16", "64", "256"), "common": length}
        found += runs("s3-srwm", settings, (seed,), **options)
        found += runs("s3", gated, (seed,), **options)
    return found


def hard_groups(seeds: Sequence[int] | None) -> list[Run]:
    """Products of 60 and 120 elements, with a curriculum from length 2 up to 16."""
    common = (
        "task.longest=16 task.curriculum.first_longest=2 task.test_lengths=2-16,17-32,64,256 train.total_steps=15000 "
        "train.batch_size=128 model.hidden_size=128 model.ff_size=256 optimizer.decay_steps=2000"
    )
    common += f" {_NO_CLIP}"
    options = {"looks": (5000, 10_000), "look_lengths": ("2-16", "64"), "common": common}
    found = []
    for seed in seeds or (10,):
        found += runs("a5", {"gated": "", "gated, 4 heads": "model.num_heads=4"}, (seed,), **options)
        found += runs("a5-srwm", {"8 heads": "model.num_heads=8", "4 heads": ""}, (seed,), **options)
        keys = {"unit keys, 4 heads": "model.memory_options.key_map=l2"}
        found += runs("a5-srwm", keys, (seed,), **options)
        for memory in ("-negative-deltanet", "-lstm", "-transformer"):
            found += runs(f"a5{memory}", {"": ""}, (seed,), **options)
        found += runs("s5", {"gated, 4 heads": "model.num_heads=4"}, (seed,), **options)
        found += runs("s5-lstm", {"": ""}, (seed,), **options)
    return found


def others(seeds: Sequence[int] | None) -> list[Run]:
    """Recall, cups, sums and the two that the paper does not solve: how far does the setting of parity go?"""
    found = []
    for seed in seeds or (10,):
        for task in ("recall", "cups-3", "sum-mod-3", "dyck-1", "reset-dyck-1", "abab-star"):
            for memory in MEMORIES:
                settings = {"paper Adam, decay": f"{_PAPER_ADAM} optimizer.decay_steps=1000"}
                common = f"train.total_steps=4000 {BINS}"
                found += runs(f"{task}{memory}", settings, (seed,), common=common)
    return found


def search(seeds: Sequence[int] | None) -> list[Run]:
    """All that settings are searched for, the longest runs first."""
    first = [*hard_groups(seeds), *s3((seeds or (10, 11))[:1]), *counting((seeds or (10, 11))[:1])]
    then = [*parity(seeds), *s3((seeds or (10, 11))[1:2]), *counting((seeds or (10, 11))[1:2]), *others(seeds)]
    return first + then


def search_2(seeds: Sequence[int] | None) -> list[Run]:
    """The second search: fewer layers and small networks for counting, what lets products go on, the harder groups."""
    one, adam = "model.num_layers=1", _PAPER_ADAM
    keys, none = "model.memory_options.key_map=l2", "model.memory_options.norm=none"

    def width(size: int, heads: int) -> str:
        return f"model.hidden_size={size} model.ff_size={2 * size} model.num_heads={heads}"

    count = {
        "1 layer": one,
        "1 layer, clip": f"{one} optimizer.clip_norm=1 optimizer.beta2=0.999 optimizer.eps=1e-8",
        "1 layer, 1 head": f"{one} model.num_heads=1",
        "1 layer, 2 heads": f"{one} model.num_heads=2",
        "1 layer, 8 heads": f"{one} model.num_heads=8",
        "1 layer, norm none": f"{one} {none}",
        "1 layer, norm input": f"{one} model.memory_options.norm=input",
        **{
            f"{title}, rate {rate}": f"{changes} optimizer.learning_rate={rate}"
            for rate in ("0.0003", "0.0001", "0.00003")
            for title, changes in (
                ("1 layer", one),
                ("1 head", "model.num_heads=1"),
                ("1 layer, 1 head", f"{one} model.num_heads=1"),
                ("1 layer, 1 head, norm none", f"{one} model.num_heads=1 {none}"),
                ("1 layer, width 128, 1 head", f"{one} {width(128, 1)}"),
            )
        },
        "1 layer, width 128, 1 head": f"{one} {width(128, 1)}",
        "1 layer, width 16, 2 heads": f"{one} {width(16, 2)}",
        "1 layer, width 32, 1 head": f"{one} {width(32, 1)}",
    }
    little = "model.memory_options.forget_min=0 model.memory_options.forget_max=0.001"
    gated_count = {
        "1 layer": one,
        "1 layer, little forgetting": f"{one} {little}",
        "1 layer, width 16": f"{one} {width(16, 2)}",
        "1 layer, width 16, little forgetting": f"{one} {width(16, 2)} {little}",
        "1 layer, width 16, 1 head, little forgetting": f"{one} {width(16, 1)} {little}",
        "1 layer, norm none, little forgetting": f"{one} {none} {little}",
    }
    lstm_count = {
        "1 layer": one,
        "1 layer, width 32": f"{one} {width(32, 1)}",
        "rate 3e-3": "optimizer.learning_rate=0.003",
    }
    found: list[Run] = []
    hard = (
        "task.longest=16 task.curriculum.first_longest=2 task.test_lengths=2-16,17-32,64,256 train.total_steps=10000 "
        f"train.batch_size=128 model.hidden_size=128 model.ff_size=256 optimizer.decay_steps=2000 {_NO_CLIP}"
    )
    options = {"looks": (5000,), "look_lengths": ("2-16", "64"), "common": hard}
    found += runs("s5", {"gated": "", "gated, rate 2e-3": "optimizer.learning_rate=0.002"}, (10,), **options)
    fades = "model.memory_options.forget_min=0.05 model.memory_options.forget_max=0.5"
    settings = {"gated": "", "gated, dropout": "model.dropout=0.1", "gated, forgets 5% to 50%": fades}
    found += runs("a5", settings, (11,), **options)
    common = f"train.total_steps=8000 {adam} {BINS}"
    for seed in (seeds or (10, 11, 12))[:2]:
        options = {"looks": (2000, 5000), "look_lengths": ("2-50", "51-100"), "common": common}
        settings = {
            "unit keys": keys,
            "unit keys, decay": f"{keys} {_DECAY}",
            "unit keys, rate 3e-3, decay": f"{keys} {_DECAY} optimizer.learning_rate=0.003",
            "unit keys, 1 layer, decay": f"{keys} {_DECAY} {one}",
            "unit keys, 2 heads, decay": f"{keys} {_DECAY} model.num_heads=2",
            "unit keys, 1 layer, width 16, decay": f"{keys} {_DECAY} {one} {width(16, 2)}",
            "1 layer, decay": f"{_DECAY} {one}",
            "1 layer, 1 head, decay": f"{_DECAY} {one} model.num_heads=1",
        }
        found += runs("shuffle-2-srwm", settings, (seed,), **options)
        settings = {
            "little forgetting, decay": f"{little} {_DECAY}",
            "little forgetting, 1 layer, decay": f"{little} {_DECAY} {one}",
            "1 layer, decay": f"{_DECAY} {one}",
        }
        found += runs("shuffle-2", settings, (seed,), **options)
    length = f"task.longest=16 task.test_lengths=2-16,17-32,64,256,1000 train.total_steps=4000 {adam}"
    length += " optimizer.decay_steps=1500"
    for seed in (seeds or (10, 11, 12))[:2]:
        options = {"looks": (2000,), "look_lengths": ("2-16", "17-32", "64"), "common": length}
        settings = {
            "1 layer": one,
            "1 layer, 1 head": f"{one} model.num_heads=1",
            "1 layer, 4 heads": f"{one} model.num_heads=4",
            "1 layer, dropout": f"{one} model.dropout=0.1",
            "1 layer, rate 3e-3": f"{one} optimizer.learning_rate=0.003",
            "dropout": "model.dropout=0.1",
            "dropout 0.3": "model.dropout=0.3",
            "norm none": none,
            "norm input": "model.memory_options.norm=input",
            "16 alone": "task.shortest=16",
            "softmax": "model.memory_options.key_map=softmax",
            "rate 3e-3": "optimizer.learning_rate=0.003",
            "may forget more": "model.memory_options.forget_max=0.5",
            "forgets 5% to 50%": fades,
            "forgets 10% to 50%": f"{fades} model.memory_options.forget_min=0.1",
            "forgets 20% to 80%": "model.memory_options.forget_min=0.2 model.memory_options.forget_max=0.8",
            "forgets 5% to 50%, 1 layer": f"{fades} {one}",
            "forgets 5% to 50%, dropout": f"{fades} model.dropout=0.1",
            "forgets 2% to 20%": "model.memory_options.forget_min=0.02 model.memory_options.forget_max=0.2",
            "width 128": width(128, 2),
        }
        found += runs("s3", settings, (seed,), **options)
        settings = {
            "1 layer": one,
            "1 layer, 1 head": f"{one} model.num_heads=1",
            "1 layer, unit keys": f"{one} {keys}",
            "1 layer, norm none": f"{one} {none}",
            "1 head": "model.num_heads=1",
            "2 heads, dropout": "model.num_heads=2 model.dropout=0.1",
            "unit keys, 2 heads": f"{keys} model.num_heads=2",
            "unit keys, dropout": f"{keys} model.dropout=0.1",
            "norm none": none,
            "16 alone, no warm-up, constant": "task.shortest=16 optimizer.warmup_steps=0 optimizer.decay_steps=0",
        }
        found += runs("s3-srwm", settings, (seed,), **options)
    for seed in seeds or (10, 11, 12):
        common = f"train.total_steps=2500 {adam} {BINS}"
        options = {"looks": (600, 1200), "look_lengths": ("2-50", "51-100"), "common": common}
        for task in ("anbn", "anbncn"):
            found += runs(f"{task}-srwm", count, (seed,), **options)
            found += runs(task, gated_count, (seed,), **options)
            found += runs(f"{task}-lstm", lstm_count, (seed,), **options)
    common = f"train.total_steps=1000 {BINS}"
    settings = {"clip": "", "no clip": _NO_CLIP, "paper Adam": adam}
    found += runs("parity-srwm", settings, (11, 12, 13, 14, 15), looks=(500,), common=common)
    common = f"train.total_steps=3000 optimizer.decay_steps=1000 {adam} {BINS}"
    for task in ("dyck-1", "reset-dyck-1", "abab-star", "recall", "cups-3", "sum-mod-3"):
        for memory in ("", "-srwm", "-gated-deltanet", "-lstm"):
            found += runs(f"{task}{memory}", {"2 layers": "", "1 layer": one}, (10,), common=common)
    return found


def counting_2(seeds: Sequence[int] | None) -> list[Run]:
    """A third search for counting."""
    one, none = "model.num_layers=1", "model.memory_options.norm=none"
    keys = "model.memory_options.key_map=l2"
    little = "model.memory_options.forget_min=0 model.memory_options.forget_max=0.001"
    slow = "optimizer.learning_rate=0.0001"
    settings = {
        "unit keys, norm none": f"{keys} {none}",
        "unit keys, norm none, 2 layers": f"{keys} {none} model.num_layers=2",
        "unit keys, norm none, 2 heads": f"{keys} {none} model.num_heads=2",
        "unit keys, norm none, rate 3e-4": f"{keys} {none} optimizer.learning_rate=0.0003",
        "norm none": none,
        "norm input, projection": "model.memory_options.norm=input model.memory_options.input_projection=true",
        "projection": "model.memory_options.input_projection=true",
        "2 heads": "model.num_heads=2",
        "rate 3e-3": "optimizer.learning_rate=0.003",
        "rate 3e-3, norm none": f"optimizer.learning_rate=0.003 {none}",
        "2 layers, rate 1e-4": f"model.num_layers=2 {slow}",
        "2 layers, 1 head, rate 1e-4": f"model.num_layers=2 model.num_heads=1 {slow}",
        "1 head, width 128, rate 1e-4": f"model.num_heads=1 model.hidden_size=128 {slow}",
        "batch 16": "train.batch_size=16",
        "batch 16, 2 heads": "train.batch_size=16 model.num_heads=2",
        "one rate": "model.memory_options.learning_rates=1",
        "no clip, default Adam": "optimizer.beta2=0.999 optimizer.eps=1e-8",
    }
    gated = {
        "little forgetting": little,
        "little forgetting, 2 layers": f"{little} model.num_layers=2",
        "little forgetting, 2 layers, norm none": f"{little} {none} model.num_layers=2",
        "little forgetting, 2 layers, rate 3e-4": f"{little} model.num_layers=2 optimizer.learning_rate=0.0003",
        "little forgetting, softmax": f"{little} model.memory_options.key_map=softmax",
    }
    found: list[Run] = []
    for seed in seeds or (10, 11, 12):
        options = {"looks": (700,), "look_lengths": ("2-50", "51-100"), "common": f"{one} {BINS}"}
        for task in ("anbn", "anbncn"):
            found += runs(f"{task}-srwm", settings, (seed,), **options)
            found += runs(task, gated, (seed,), **options)
    return found


def table(seeds: Sequence[int] | None) -> list[Run]:
    """Every task with every memory, by the recipes as they are: long runs first, then what tells most."""
    seeds = seeds or (0, 1, 2)
    most, others = ("-srwm", "", "-lstm"), ("-deltanet", "-gated-deltanet", "-negative-deltanet", "-transformer")
    long, six = ("a5", "shuffle-2", "s3"), ("parity", "aa-star", "abab-star", "anbn", "anbncn")
    rest = ("cups-3", "recall", "dyck-1", "sum-mod-3", "reset-dyck-1")
    found = by_recipe([task + memory for task in long for memory in most], seeds[0])
    for seed in seeds[1:]:
        found += by_recipe([task + memory for task in ("shuffle-2", "s3") for memory in most] + ["a5"], seed)
    for seed in seeds:
        found += by_recipe([task + memory for task in six for memory in most], seed)
    found += counting_2(None)[: len(counting_2((10,)))]
    found += by_recipe([task + memory for task in ("s3", "shuffle-2", *six) for memory in others], seeds[0])
    found += by_recipe([task + memory for task in rest for memory in MEMORIES], seeds[0])
    for seed in seeds[1:]:
        found += by_recipe([task + memory for task in (*six, "s3") for memory in others], seed)
        found += by_recipe([task + memory for task in rest for memory in MEMORIES], seed)
    found += by_recipe(["s5", "s5-lstm", *(f"a5{memory}" for memory in others)], seeds[0])
    found += counting_2(None)[len(counting_2((10,))) :]
    for seed in seeds[1:]:
        found += by_recipe([*(f"shuffle-2{memory}" for memory in others), "a5-srwm", "a5-lstm"], seed)
    return found


PLANS: dict[str, Callable[[Sequence[int] | None], list[Run]]] = {
    "speed": speed,
    "parity": parity,
    "counting": counting,
    "s3": s3,
    "hard-groups": hard_groups,
    "others": others,
    "search": search,
    "search-2": search_2,
    "noise": noise,
    "counting-as-published": counting_as_published,
    "improved": improved,
    "table": table,
}
