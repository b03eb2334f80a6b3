"""Ends a program when nothing new is to be expected: two steps in a row with the same peak, or as many steps as were asked."""

LEAST = 3
"""How many steps are always done: the first has no optimizer state, the second may still allocate some."""

PATIENCE = 16
"""After how many steps of another optimizer the one that counts is given up."""


class Steps:
    """Counts the steps of the first optimizer that steps; `end(why)` is called when there were enough.

    With several, such as one for each parameter, or a generator's beside its discriminator's, a step is what lies between two
    of the same. With gradients accumulated over several batches it is all of them.
    """

    def __init__(self, state, end, most=None, is_ending_early=True):
        """`state()` returns what must be equal after two steps: peaks and what is allocated."""
        self.count = 0
        self._state, self._end, self._most, self._is_ending_early = state, end, most, is_ending_early
        self._clock = self._last = None
        self._others = {}

    def stepped(self, optimizer, *_):
        """An optimizer made a step."""
        if self._clock != id(optimizer):
            # Each of them by itself: a model may have an optimizer for each of a thousand parameters.
            steps = self._others[id(optimizer)] = self._others.get(id(optimizer), 0) + 1
            if self._clock is not None and steps < PATIENCE:
                return
            self._clock, self._last = id(optimizer), None
        self._others.clear()
        self.count += 1
        state = self._state()
        if self._most is not None and self.count >= self._most:
            self._end("steps")
        elif self._is_ending_early and self.count >= LEAST and state == self._last:
            self._end("same peak")
        self._last = state

    def start(self):
        """Counts from now on."""
        from torch.optim.optimizer import register_optimizer_step_post_hook

        register_optimizer_step_post_hook(self.stepped)
