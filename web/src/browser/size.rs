//! The size of an element, updated as it changes.

use js_sys::Number;
use trace::order::Within;
use wasm_bindgen::JsCast;
use wasm_bindgen::prelude::Closure;
use wasm_bindgen_futures::spawn_local;
use web_sys::{HtmlElement, ResizeObserver};
use yew::prelude::*;

use super::{Listener, use_effect_with, window};

/// More device pixels per CSS pixel cost time without a visible benefit.
const HIGHEST_RATIO: f64 = 2.0;

/// The inner size of an element.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Size {
    /// In CSS pixels.
    pub width: f64,
    /// In CSS pixels.
    pub height: f64,
    /// Device pixels per CSS pixel.
    pub ratio: f64,
}

impl Size {
    /// Returns width and height in device pixels.
    pub fn device(self) -> (u32, u32) {
        ((self.width * self.ratio).round() as u32, (self.height * self.ratio).round() as u32)
    }

    /// Returns whether the area is empty.
    pub fn is_empty(self) -> bool {
        self.device().0 == 0 || self.device().1 == 0
    }
}

/// Returns the distance of two edges in CSS pixels after the browser has moved each to a whole device pixel.
fn snapped(from: f64, to: f64, ratio: f64) -> f64 {
    ((to * ratio).round() - (from * ratio).round()).max(0.0) / ratio
}

/// Measures an element inside of its borders and scroll bars, and the screen's device pixels per CSS pixel.
fn measure(element: &HtmlElement) -> (Size, f64) {
    let (ratio, edges) = (window().device_pixel_ratio(), element.get_bounding_client_rect());
    let bars = |all: i32, inner: i32| f64::from(all - inner);
    let right = edges.right() - bars(element.offset_width(), element.client_width());
    let bottom = edges.bottom() - bars(element.offset_height(), element.client_height());
    let (width, height) = (snapped(edges.left(), right, ratio), snapped(edges.top(), bottom, ratio));
    (Size { width, height, ratio: ratio.within(1.0, HIGHEST_RATIO) }, ratio)
}

/// Returns the inner size of an element, also after the page is zoomed or moved to another screen; zero until it is on the
/// page.
#[hook]
pub fn use_size(node: &NodeRef) -> Size {
    let now = use_state_eq(|| (Size::default(), window().device_pixel_ratio()));
    let again = {
        let (set, node) = (now.setter(), node.clone());
        move || {
            if let Some(element) = node.cast::<HtmlElement>() {
                set.set(measure(&element));
            }
        }
    };
    let (size, ratio) = *now;
    {
        let again = again.clone();
        use_effect_with(node.clone(), move |node| {
            let mut held = None;
            if let Some(element) = node.cast::<HtmlElement>() {
                // Measures once all that is being mounted is on the page, since the size is not final before. The observer
                // reports only with the next frame.
                spawn_local({
                    let again = again.clone();
                    async move { again() }
                });
                let closure = Closure::<dyn FnMut()>::new(again);
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
    }
    // The observer says nothing of another screen on which the element is as large as before.
    use_effect_with(ratio.to_bits(), move |_| {
        // In the words of the browser, which the standard library would need ten kilobytes to find.
        let ratio = Number::from(ratio).to_string_with_radix(10).map(String::from).unwrap_or_default();
        let query = format!("(resolution: {ratio}dppx)");
        let query = window().match_media(&query).ok().flatten();
        let listener = query.map(|query| Listener::new(&query, "change", move |_| again()));
        move || drop(listener)
    });
    size
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_in_whole_device_pixels() {
        let cases = [
            // From, to, ratio; the device pixels between them.
            (0.0, 800.0, 1.0, 800.0),
            (0.0, 801.6, 1.25, 1002.0),
            (0.4, 801.6, 1.25, 1001.0),
            (10.0, 11.0, 1.5, 2.0),
            (68.0, 1000.2, 2.0, 1864.0),
            (5.0, 4.0, 2.0, 0.0),
        ];
        for (from, to, ratio, want) in cases {
            let width = snapped(from, to, ratio);
            assert_eq!(f64::from(Size { width, height: width, ratio }.device().0), want, "{from} to {to} at {ratio}");
        }
    }
}
