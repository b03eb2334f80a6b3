"""Vramscope in other libraries. Each module imports its library, and nothing else imports these modules.

- `vramscope.integrations.lightning.VramscopeCallback`: for Lightning's `Trainer`.
- `vramscope.integrations.transformers.VramscopeCallback`: for the `Trainer` of Hugging Face Transformers.
- `vramscope.integrations.scalars`: the memory as scalars, for Weights & Biases, TensorBoard and others.
- `vramscope.integrations.notebook`: ``%load_ext vramscope`` and ``%%vramscope``.
- `vramscope.integrations.pytest_plugin`: the fixture ``vramscope_memory``.
"""
