"""Prints the release of this Python's PyTorch, such as 2.11."""

import torch

print(".".join(torch.__version__.split(".")[:2]))
