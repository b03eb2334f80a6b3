"""A callback for Hugging Face Transformers: ``Trainer(..., callbacks=[VramscopeCallback()])``."""

from __future__ import annotations

from transformers import TrainerCallback

from ._training import Training


class VramscopeCallback(TrainerCallback):
    """Records a trainer's run: ``global_step`` as steps, epochs and evaluations as spans.

    The recording begins when this is made, before the trainer moves the model to the GPU. A model that is on the GPU already is in
    the recording's state at the start, without its lines.

    `options` are those of `vramscope.attach`. If the process is recorded already, they are not used, and that recording
    goes on after the training. A second one writes `out` as ``NAME.run2.vramscope``. `scalars` is a
    `vramscope.integrations.scalars.Scalars`, which is called at each step.

    The library does not tell callbacks when an evaluation begins. Within a training, the span begins where the trainer
    decides to evaluate; in a call of ``evaluate`` outside of it, after the first batch. It does not tell them of errors
    either: after one, the recording goes on until the next training or the end of the process.
    """

    def __init__(self, scalars=None, **options):
        self._training = Training(options, scalars)
        self._training.begin_early()

    def on_train_begin(self, args, state, control, **kwargs):
        self._training.restart()

    def on_epoch_begin(self, args, state, control, **kwargs):
        self._training.open("epoch", f"epoch {int(state.epoch or 0)}")

    def on_step_begin(self, args, state, control, **kwargs):
        self._training.step(state.global_step)

    def on_step_end(self, args, state, control, **kwargs):
        if control.should_evaluate:
            self._training.open("evaluation")

    def on_epoch_end(self, args, state, control, **kwargs):
        self._training.close("epoch")
        if control.should_evaluate:
            self._training.open("evaluation")

    def on_prediction_step(self, args, state, control, **kwargs):
        self._training.open("evaluation")

    def on_evaluate(self, args, state, control, **kwargs):
        self._training.close("evaluation")

    def on_predict(self, args, state, control, metrics, **kwargs):
        self._training.close("evaluation")

    def on_train_end(self, args, state, control, **kwargs):
        self._training.end()
