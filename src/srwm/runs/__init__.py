"""What every training has in common; this room knows no model and no data.

| module | what it holds |
| --- | --- |
| `config` | frozen dataclasses to JSON and back, and overrides from the command line |
| `run_folder` | the folder of a run: `config.json`, `metrics.jsonl`, `timing.jsonl`, `checkpoints/`, `result.json` |
| `checkpoint` | exact checkpoints that are written whole or not at all, and checked when they are read |
| `metrics` | one JSON line a record |
| `loop` | the loop itself: logging, validation, saving, resuming, stopping |
| `gradient_watch` | the guard against NaN |
| `processes` | several processes under `torchrun` |
| `devices` | where to compute, how exactly, and on what hardware |

Import from the modules: those that only read a run folder (`config`, `metrics`, `run_folder`) do not load torch.
"""
