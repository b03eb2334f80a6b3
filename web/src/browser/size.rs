//! The size of an element, updated as it changes.

use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::Closure;
use wasm_bindgen_futures::spawn_local;
use web_sys::{Element, ResizeObserver};
use yew::prelude::*;

/// Returns the inner width and height of an element in CSS pixels; zero until it is on the page.
#[hook]
pub fn use_size(node: &NodeRef) -> (f64, f64) {
    let size = use_state_eq(|| (0.0, 0.0));
    let set = size.setter();
    use_effect_with(node.clone(), move |node| {
        let mut held = None;
        if let Some(element) = node.cast::<Element>() {
            let measured = element.clone();
            let measure = move || set.set((f64::from(measured.client_width()), f64::from(measured.client_height())));
            // Measures once all that is being mounted is on the page, since the size is not final before. The observer
            // reports only with the next frame.
            spawn_local({
                let measure = measure.clone();
                async move { measure() }
            });
            let closure = Closure::<dyn FnMut()>::new(measure);
            if let Ok(observer) = ResizeObserver::new(closure.as_ref().unchecked_ref()) {
                observer.observe(&element);
                held = Some((observer, closure));
            }
        }
        move || {
            if let Some((observer, closure)) = held {
                observer.disconnect();
                drop(closure);
            }
        }
    });
    *size
}
