"""What every training has in common; it knows no model and no data.

| module | what it holds |
| --- | --- |
| `config` | frozen dataclasses to JSON and back, and overrides from the command line |
| `run_folder` | the folder of a run: `config.json`, `metrics.jsonl`, `timing.jsonl`, `checkpoints/`, `result.json` |
| `checkpoint` | exact checkpoints that are written whole or not at all, and checked when they are read |
| `metrics` | one JSON line a record |
| `results` | results of runs, read with the types of their fields |
| `reading` | files that others may have put in their place: read whole, and never a pipe or a device |
| `loop` | the loop over the steps: logging, saving, resuming, stopping |
| `training` | a run, from the choice of a device to `result.json`: what an experiment's `train` gets |
| `adam`, `adam_training` | a network that Adam trains: schedule, running sums, what its checkpoints hold |
| `gradient_watch` | the guard against NaN |
| `processes` | several processes under `torchrun` |
| `devices` | where to compute, how exactly, and on what hardware |
| `experiment` | the base class of experiments: recipes, training and test; all else comes in generic form |
| `generic_results` | that form: figures, curves and tables of the numbers of any test |
| `recipes` | named configurations, found by name and shown as tables |
| `model_files`, `loading` | trained models on disk, in run folders and exported |
| `model_card` | the card of an exported model |

Import from the modules: those that only read a run folder (`config`, `metrics`, `run_folder`) do not load torch.
"""
