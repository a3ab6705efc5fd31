"""What every training has in common; this room knows no model and no data.

| module | what it holds |
| --- | --- |
| `config` | frozen dataclasses to JSON and back, and overrides from the command line |
| `run_folder` | the folder of a run: `config.json`, `metrics.jsonl`, `timing.jsonl`, `checkpoints/`, `result.json` |
| `checkpoint` | exact checkpoints that are written whole or not at all, and checked when they are read |
| `metrics` | one JSON line a record |
| `results` | what runs came to, read with the types of its fields |
| `reading` | files that others may have put in their place: read whole, and never a pipe or a device |
| `loop` | the loop itself: logging, validation, saving, resuming, stopping |
| `gradient_watch` | the guard against NaN |
| `processes` | several processes under `torchrun` |
| `devices` | where to compute, how exactly, and on what hardware |
| `training` | a recipe trained in a run folder from beginning to end, for any kind of run |
| `saved` | trained models on disk, in run folders and exported |
| `card` | the card of an exported model |
| `recipes` | named configurations, found by name and shown as tables |
| `kind` | what a kind of run offers to the commands that serve every kind |

Import from the modules: those that only read a run folder (`config`, `metrics`, `run_folder`) do not load torch.
"""
