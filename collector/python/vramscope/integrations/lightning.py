"""A callback for Lightning: ``Trainer(callbacks=[VramscopeCallback()])``."""

from __future__ import annotations

import sys

from ._training import Training

if "pytorch_lightning" in sys.modules and "lightning.pytorch" not in sys.modules:
    from pytorch_lightning import Callback
else:
    try:
        from lightning.pytorch import Callback
    except ImportError:
        from pytorch_lightning import Callback


class VramscopeCallback(Callback):
    """Records a trainer's run: ``global_step`` as steps; epochs, the sanity check, validation, test and prediction as spans.

    `options` are those of `vramscope.attach`. If the process is recorded already, they are not used, and that recording
    goes on after the run. A second run writes `out` as ``NAME.run2.vramscope``. `scalars` is a
    `vramscope.integrations.scalars.Scalars`, which is called at each step. A callback that is pickled, as by a strategy
    that starts processes, begins anew there.
    """

    def __init__(self, scalars=None, **options):
        self._scalars, self._options = scalars, options
        self._training = Training(options, scalars)

    def __getstate__(self):
        return {"scalars": self._scalars, "options": self._options}

    def __setstate__(self, state):
        self.__init__(state["scalars"], **state["options"])

    def setup(self, trainer, pl_module, stage):
        self._training.begin()

    def on_train_epoch_start(self, trainer, pl_module):
        self._training.open("epoch", f"epoch {trainer.current_epoch}")

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        self._training.step(trainer.global_step)

    def on_train_epoch_end(self, trainer, pl_module):
        self._training.close("epoch")

    def on_validation_start(self, trainer, pl_module):
        self._training.open("validation", "sanity check" if trainer.sanity_checking else None)

    def on_validation_end(self, trainer, pl_module):
        self._training.close("validation")

    def on_test_start(self, trainer, pl_module):
        self._training.open("test")

    def on_test_end(self, trainer, pl_module):
        self._training.close("test")

    def on_predict_start(self, trainer, pl_module):
        self._training.open("prediction")

    def on_predict_end(self, trainer, pl_module):
        self._training.close("prediction")

    def on_exception(self, trainer, pl_module, exception):
        # Lightning does not call `teardown` after an error.
        self._training.end()

    def teardown(self, trainer, pl_module, stage):
        self._training.end()
