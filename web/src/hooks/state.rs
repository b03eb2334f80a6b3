//! State: what a view keeps from one drawing to the next.

use std::marker::PhantomData;
use std::ops::Deref;

use yew::functional::{Hook, HookContext, UseStateHandle, UseStateSetter};

use super::erased::Erased;

/// A state, as it was when the view was drawn.
pub struct State<T> {
    handle: UseStateHandle<Erased>,
    of: PhantomData<T>,
}

/// What sets a state.
pub struct Setter<T> {
    setter: UseStateSetter<Erased>,
    of: PhantomData<T>,
}

/// A state that begins as `init` says; the view is drawn again when it is set to something else. Yew's hook of this name,
/// made once.
pub fn use_state_eq<T: PartialEq + 'static>(init: impl FnOnce() -> T) -> impl Hook<Output = State<T>> {
    Begin(move || Erased::new(init()), PhantomData)
}

struct Begin<T, F>(F, PhantomData<T>);

impl<T, F: FnOnce() -> Erased> Hook for Begin<T, F> {
    type Output = State<T>;

    fn run(self, context: &mut HookContext) -> State<T> {
        State { handle: erased(Box::new(self.0), context), of: PhantomData }
    }
}

/// The one state that Yew knows.
#[inline(never)]
fn erased(init: Box<dyn FnOnce() -> Erased + '_>, context: &mut HookContext) -> UseStateHandle<Erased> {
    yew::functional::use_state_eq(init).run(context)
}

impl<T: PartialEq + 'static> State<T> {
    /// Sets it.
    pub fn set(&self, value: T) {
        self.handle.set(Erased::new(value));
    }

    /// What sets it, for later.
    pub fn setter(&self) -> Setter<T> {
        Setter { setter: self.handle.setter(), of: PhantomData }
    }
}

impl<T: PartialEq + 'static> Setter<T> {
    /// Sets the state.
    pub fn set(&self, value: T) {
        self.setter.set(Erased::new(value));
    }
}

impl<T: 'static> Deref for State<T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self.handle.get() {
            Some(value) => value,
            // Only values of this type are ever put in.
            None => unreachable!(),
        }
    }
}

impl<T> Clone for State<T> {
    fn clone(&self) -> Self {
        Self { handle: self.handle.clone(), of: PhantomData }
    }
}

impl<T> Clone for Setter<T> {
    fn clone(&self) -> Self {
        Self { setter: self.setter.clone(), of: PhantomData }
    }
}
