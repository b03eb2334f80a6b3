//! The model as components see it: a snapshot to read and a way to send actions.

use std::cell::{Cell, RefCell};
use std::ops::Deref;
use std::rc::{Rc, Weak};

use query::{Axis, Summary, Window};
use yew::prelude::*;

use crate::browser::clock_ms;
use crate::model::{Action, FileKey, Model, PaneLook, Parts, Shared, is_noticed, update};
use crate::worker::client::Workers;

/// The addresses of the heatmap, as offsets in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlotRows {
    /// All of them.
    pub all: Window,
    /// The offset that stays in place when a key zooms, if it is in view: that of the failed request.
    pub pivot: Option<f64>,
}

/// Owns the model. There is one per page; clones share it.
#[derive(Clone)]
pub struct Store(Rc<Inner>);

struct Inner {
    model: RefCell<Rc<Model>>,
    listeners: RefCell<Vec<Weak<ModelListener>>>,
    workers: Workers,
    pointer: Cell<Option<f64>>,
    rows: Cell<Option<PlotRows>>,
    /// When a step was last added or continued, in milliseconds. Not part of the model, which has no clock.
    stepped_ms: Cell<f64>,
}

impl Store {
    /// Creates a store with an initial model.
    pub fn new(model: Model) -> Self {
        Self(Rc::new(Inner {
            model: RefCell::new(Rc::new(model)),
            listeners: RefCell::default(),
            workers: Workers::default(),
            pointer: Cell::new(None),
            rows: Cell::new(None),
            stepped_ms: Cell::new(0.0),
        }))
    }

    /// Calls `listener` whenever one of the parts has changed, until the returned value is dropped.
    #[must_use]
    pub fn listen(&self, parts: Parts, listener: Callback<()>) -> Rc<ModelListener> {
        let listener = Rc::new(ModelListener { parts, listener });
        self.0.listeners.borrow_mut().push(Rc::downgrade(&listener));
        listener
    }

    /// Returns a handle on the current model, for components to render from.
    pub fn handle(&self) -> ModelHandle {
        ModelHandle { model: Rc::clone(&self.0.model.borrow()), store: self.clone(), beside: None }
    }
}

/// What is called when one of some parts of the model has changed, for as long as it is held.
pub struct ModelListener {
    parts: Parts,
    listener: Callback<()>,
}

/// Where components get the model from.
#[derive(Clone)]
pub struct ModelSource {
    /// The store, which has the current one.
    pub store: Store,
    /// What a component around them hands to them instead, if what they show is beside the current file.
    pub beside: Option<ModelHandle>,
}

impl PartialEq for ModelSource {
    fn eq(&self, other: &Self) -> bool {
        // There is one store.
        self.beside == other.beside
    }
}

/// The model as it was when the component was rendered (through `Deref`), and the way to change it.
#[derive(Clone)]
pub struct ModelHandle {
    model: Rc<Model>,
    store: Store,
    /// The file and the device that it is about, if they are shown beside the current ones.
    beside: Option<(FileKey, u32)>,
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
    /// Applies an action. The model changes immediately; components follow before the next frame, unless they would show
    /// nothing of the change.
    pub fn dispatch(&self, action: Action) {
        let action = match self.beside {
            Some(of) => Action::Of(of, Box::new(action)),
            None => action,
        };
        let inner = &self.store.0;
        let (rest_ms, changes) = {
            let history = &inner.model.borrow().history;
            (history.rest_ms(), history.changes)
        };
        if rest_ms.is_some_and(|rest_ms| clock_ms() - inner.stepped_ms.get() > rest_ms) {
            // No component depends on this, so none is rendered.
            let rested = update(&inner.model.borrow(), Action::Rested);
            *inner.model.borrow_mut() = Rc::new(rested);
        }
        let session = action.of_session();
        let next = update(&inner.model.borrow(), action);
        if next.history.changes != changes {
            inner.stepped_ms.set(clock_ms());
        }
        let changed = Parts::changed(&inner.model.borrow(), &next);
        if changed == Parts::NONE {
            return;
        }
        let before = inner.model.replace(Rc::new(next));
        if session.is_none_or(|key| is_noticed(&before, &inner.model.borrow(), key)) {
            inner.listeners.borrow_mut().retain(|held| {
                let held = held.upgrade();
                if let Some(held) = held.as_ref().filter(|held| held.parts.is_among(changed)) {
                    held.listener.emit(());
                }
                held.is_some()
            });
        }
    }

    /// Returns the current model, for callbacks that outlive the render that created them.
    pub fn now(&self) -> Rc<Model> {
        let now = Rc::clone(&self.store.0.model.borrow());
        self.beside.and_then(|of| now.beside(of)).map_or(now, Rc::new)
    }

    /// Returns the model for views of another file that are shown beside those of the current one: for them, a device of that
    /// file is the current one. `None` if it is not there.
    pub fn beside(&self, of: (FileKey, u32)) -> Option<Self> {
        Some(Self { model: Rc::new(self.model.beside(of)?), store: self.store.clone(), beside: Some(of) })
    }

    /// Returns the source for components that are rendered with this model.
    pub fn as_source(&self) -> ModelSource {
        ModelSource { store: self.store.clone(), beside: Some(self.clone()) }
    }

    /// Returns the model for views that look so.
    pub fn looking(&self, pane: PaneLook) -> Self {
        let mut model = (*self.model).clone();
        model.pane = pane;
        Self { model: Rc::new(model), ..self.clone() }
    }

    /// Returns what an answer that moves the window goes by: the axis, and how often a person has changed what is shown.
    pub fn shown(&self) -> (Axis, u32) {
        let now = self.now();
        (now.view.axis, now.history.changes)
    }

    /// Returns the summary of the current file, once it has been read.
    pub fn summary(&self) -> Option<Rc<Summary>> {
        self.shared_summary().map(Shared::rc)
    }

    /// Returns the workers of the open files.
    pub fn workers(&self) -> &Workers {
        &self.store.0.workers
    }

    /// Returns the axis coordinate under the pointer, as last reported by a view. It is not part of the model, because
    /// it changes with every movement and nothing is drawn from it; zooming by key keeps it in place.
    pub fn pointer(&self) -> Option<f64> {
        self.store.0.pointer.get()
    }

    /// Sets the axis coordinate under the pointer; `None` when the pointer has left.
    pub fn set_pointer(&self, x: Option<f64>) {
        self.store.0.pointer.set(x);
    }

    /// Returns the addresses of the heatmap, as its last picture had them. Zooming by key keeps to them.
    pub fn rows(&self) -> Option<PlotRows> {
        self.store.0.rows.get()
    }

    /// Sets the addresses of the heatmap.
    pub fn set_rows(&self, rows: PlotRows) {
        self.store.0.rows.set(Some(rows));
    }
}

/// Returns the model in any component. The component renders again when the model changes.
pub fn use_model() -> impl Hook<Output = ModelHandle> {
    use_model_of(Parts::ALL)
}

/// Returns the model in a component that shows some of it. The component renders again when one of these parts changes. Its
/// callbacks read what they need of the others when they are called ([`ModelHandle::now`]).
pub fn use_model_of(parts: Parts) -> impl Hook<Output = ModelHandle> {
    UseModel(parts)
}

struct UseModel(Parts);

impl Hook for UseModel {
    type Output = ModelHandle;

    // Most components call it, so that copies of it would make the page larger.
    #[inline(never)]
    fn run(self, context: &mut HookContext) -> ModelHandle {
        let Self(parts) = self;
        let source = use_context::<ModelSource>().run(context);
        let source = source.expect("every component of the page lives inside the app, which provides the model");
        let redraw = use_force_update().run(context);
        let changed = Callback::from(move |()| redraw.force_update());
        let _listening = use_mut_ref(|| source.store.listen(parts, changed)).run(context);
        source.beside.unwrap_or_else(|| source.store.handle())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::FileKey;
    use crate::model::testing::{added, after, read, watched};

    #[test]
    fn a_session_that_is_not_shown_grows_without_a_render() {
        for (shown, renders) in [(0, 0), (1, 1)] {
            let [opened, grown] = watched(1, 10);
            let first =
                [added(0, "a"), read(0, &[10]), opened, grown, Action::SelectFile(FileKey(shown)), Action::Rested];
            let store = Store::new(after(first));
            let count = Rc::new(Cell::new(0));
            let counted = Rc::clone(&count);
            let listening = store.listen(Parts::ALL, Callback::from(move |()| counted.set(counted.get() + 1)));
            let [_, grown] = watched(1, 20);
            store.handle().dispatch(grown);
            assert_eq!(count.get(), renders);
            let session = store.handle().entry(FileKey(1)).and_then(|file| file.summary().cloned());
            assert_eq!(session.map(|summary| summary.devices[0].events), Some(20), "and it is there");
            drop(listening);
            let [_, grown] = watched(1, 30);
            store.handle().dispatch(grown);
            assert_eq!(count.get(), renders, "nobody listens any more");
        }
    }
}
