//! What is drawn by the second module of the page, which comes while the first one is already in use.
//!
//! The first module draws what everybody sees first: the start page and the timeline of a trace. The other views, the details and all
//! dialogs come a moment later, so that they don't delay it. Only pages that users install have two modules; in other builds everything
//! is there from the start.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;

use wasm_bindgen_futures::spawn_local;
use yew::prelude::*;

use crate::browser::use_effect_with;
use crate::hooks::{ModelHandle, use_model_of};
use crate::model::{Dialog, Parts, Tab};

/// A part of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The view of a tab.
    View(Tab),
    /// A dialog.
    Dialog(Dialog),
    /// The page of a sweep.
    Sweep,
    /// The details of what is selected.
    Details,
    /// The text for screen readers.
    TextTwin,
    /// The menu of a right-click.
    ContextMenu,
}

/// Renders a part.
pub type Draw = fn(Part, &ModelHandle) -> Html;

/// The second module on its way; `None` if it did not arrive.
pub type Loading = Pin<Box<dyn Future<Output = Option<Draw>>>>;

thread_local! {
    /// How the second module is loaded.
    static LOADER: Cell<Option<fn() -> Loading>> = const { Cell::new(None) };
    /// What it draws, once it is here.
    static DRAW: Cell<Option<Draw>> = const { Cell::new(None) };
}

/// Sets how the second module is loaded. The function may be called again, also while the module is on its way.
pub fn set_loader(load: fn() -> Loading) {
    LOADER.set(Some(load));
}

/// Loads the second module if it is not here yet. If that fails, nothing is shown: whoever needs a part tries again.
pub fn preload() {
    load(Callback::noop());
}

/// Loads the second module, and says whether it is here.
fn load(done: Callback<bool>) {
    let Some(load) = LOADER.get().filter(|_| DRAW.get().is_none()) else { return done.emit(DRAW.get().is_some()) };
    spawn_local(async move {
        if let Some(draw) = load().await {
            DRAW.set(Some(draw));
        }
        done.emit(DRAW.get().is_some());
    });
}

/// Properties of [`Deferred`].
#[derive(Clone, Copy, PartialEq, Properties)]
pub struct DeferredProps {
    /// What is drawn.
    pub part: Part,
}

/// Draws a part of the page, as soon as its module is here.
#[component]
pub fn Deferred(props: &DeferredProps) -> Html {
    let model = use_model_of(Parts::REST);
    let has_failed = use_state_eq(|| false);
    let redraw = use_force_update();
    let attempt = {
        let has_failed = has_failed.setter();
        Callback::from(move |()| {
            let (has_failed, redraw) = (has_failed.clone(), redraw.clone());
            load(Callback::from(move |is_here: bool| {
                has_failed.set(!is_here);
                redraw.force_update();
            }));
        })
    };
    let drawn = DRAW.get().map(|draw| draw(props.part, &model));
    {
        let attempt = attempt.clone();
        use_effect_with(drawn.is_some(), move |is_drawn| {
            if !is_drawn {
                attempt.emit(());
            }
        });
    }
    if let Some(drawn) = drawn {
        return drawn;
    }
    // Nobody asked for these.
    if !*has_failed || matches!(props.part, Part::TextTwin | Part::ContextMenu | Part::Details) {
        return Html::default();
    }
    html! {
        <div class="deferred-failed" role="alert" data-testid="deferred-failed">
            <p>{ "This part of the page could not be loaded. Check the connection; if Vramscope was updated meanwhile, reload the page." }</p>
            <button type="button" class="button" onclick={attempt.reform(|_: MouseEvent| ())}>{ "Try again" }</button>
        </div>
    }
}
