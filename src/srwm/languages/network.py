"""The network of languages: symbols to answers, one a position, with a state that can be carried on."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from srwm.nn import SequenceModel, SequenceState

from .config import LanguagesConfig
from .registry import alphabet


class StateTracker(nn.Module):
    """Reads a sequence of symbols, and answers at every position.

    Args:
        config: the recipe; its `task` and `model` say what the network is.

    Attributes:
        config: the recipe.
        symbols: what the symbols 0, 1, ... are called; their numbers for a task in a file.
        num_classes: answers to choose from.
        sequence: one-hot symbols to scores, under the contract of `srwm.nn`.

    Raises:
        ValueError: if an option does not fit.
        InputError: if there is no such task.

    Example:
        >>> tracker = StateTracker(LanguagesConfig())
        >>> scores, state = tracker(torch.tensor([[1, 0, 1, 1]]))
        >>> scores.shape
        torch.Size([1, 4, 2])
        >>> scores, state = tracker(torch.tensor([[1]]), state)  # goes on where it was
    """

    def __init__(self, config: LanguagesConfig) -> None:
        super().__init__()
        self.config = config
        self.symbols, self.num_classes = alphabet(config.task)
        model = config.model
        self.sequence = SequenceModel(
            len(self.symbols),
            self.num_classes,
            memory=model.memory,
            hidden_size=model.hidden_size,
            num_layers=model.num_layers,
            num_heads=model.num_heads,
            ff_size=model.ff_size,
            dropout=model.dropout,
            memory_options=model.memory_options,
        )

    def forward(
        self, symbols: Int[Tensor, "b t"], state: SequenceState | None = None
    ) -> tuple[Float[Tensor, "b t classes"], SequenceState]:
        """Read parts of sequences.

        Args:
            symbols: what comes next.
            state: what an earlier call returned; None is new.

        Returns:
            Scores (logits) of the answers at each position, and the state after the last.
        """
        # PyTorch's own one-hot would wait for the device to look at the numbers.
        names = torch.arange(len(self.symbols), device=symbols.device)
        one_hot = (symbols[..., None] == names).to(next(self.parameters()).dtype)
        scores, state = self.sequence(one_hot, state)
        return scores, state
