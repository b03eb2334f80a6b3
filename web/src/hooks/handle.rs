//! The model as components hold it: a snapshot to read and a way to send actions.

use std::cell::{Cell, RefCell};
use std::ops::Deref;
use std::rc::Rc;

use shared::query::Summary;
use yew::prelude::*;

use crate::model::{Action, Model, Shared, update};
use crate::worker::client::Workers;

/// Where the model lives. There is one in a page; clones share it.
#[derive(Clone)]
pub struct Store(Rc<Inner>);

struct Inner {
    model: RefCell<Rc<Model>>,
    changed: RefCell<Callback<()>>,
    workers: Workers,
    pointer: Cell<Option<f64>>,
}

impl Store {
    /// A store around a first model.
    pub fn new(model: Model) -> Self {
        Self(Rc::new(Inner {
            model: RefCell::new(Rc::new(model)),
            changed: RefCell::new(Callback::noop()),
            workers: Workers::default(),
            pointer: Cell::new(None),
        }))
    }

    /// Whom to tell when the model has changed.
    pub fn set_listener(&self, changed: Callback<()>) {
        *self.0.changed.borrow_mut() = changed;
    }

    /// The model as it is now, for components to render from.
    pub fn handle(&self) -> ModelHandle {
        ModelHandle { model: Rc::clone(&self.0.model.borrow()), store: self.clone() }
    }
}

/// The model as it was when the component was rendered (by `Deref`), and the way to change it.
#[derive(Clone)]
pub struct ModelHandle {
    model: Rc<Model>,
    store: Store,
}

impl PartialEq for ModelHandle {
    fn eq(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.model, &other.model)
    }
}

impl Deref for ModelHandle {
    type Target = Model;

    fn deref(&self) -> &Model {
        &self.model
    }
}

impl ModelHandle {
    /// Sends an action. The model changes at once, components follow before the next frame.
    pub fn dispatch(&self, action: Action) {
        let inner = &self.store.0;
        let next = update(&inner.model.borrow(), action);
        if *inner.model.borrow().as_ref() != next {
            *inner.model.borrow_mut() = Rc::new(next);
            let changed = inner.changed.borrow().clone();
            changed.emit(());
        }
    }

    /// The model as it is this very moment: for callbacks that outlive the render they were made in.
    pub fn now(&self) -> Rc<Model> {
        Rc::clone(&self.store.0.model.borrow())
    }

    /// What the current file holds, once it has been read.
    pub fn summary(&self) -> Option<Rc<Summary>> {
        self.shared_summary().map(Shared::rc)
    }

    /// The workers behind the files.
    pub fn workers(&self) -> &Workers {
        &self.store.0.workers
    }

    /// The coordinate of the axis under the pointer, as the last view over which it moved has said. Not part of the
    /// model, because it changes with every movement and nothing is drawn from it: zooming by key keeps it in place.
    pub fn pointer(&self) -> Option<f64> {
        self.store.0.pointer.get()
    }

    /// Says which coordinate of the axis is under the pointer; `None` when it has left.
    pub fn set_pointer(&self, x: Option<f64>) {
        self.store.0.pointer.set(x);
    }
}

/// The model, in any component of the page; the component is rendered again when it changes.
#[hook]
pub fn use_model() -> ModelHandle {
    use_context::<ModelHandle>().expect("every component of the page lives inside the app, which provides the model")
}
