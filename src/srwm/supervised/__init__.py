"""What trainings on labelled images have in common: few-shot learning, streams, continual learning.

The step in a CUDA graph, its configuration, augmentation, the network's parts, prototypical losses, statistics.
"""
