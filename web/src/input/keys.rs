//! Listens to the keyboard for the whole page.

use std::cell::RefCell;
use std::rc::Rc;

use wasm_bindgen::JsCast;
use web_sys::{Element, KeyboardEvent};
use yew::prelude::*;

use super::command::{Chord, Key, Press};
use super::registry::live_commands;
use crate::browser::{Listener, document, use_effect_with, window};
use crate::hooks::use_model_of;
use crate::model::Parts;

/// Runs the command of a pressed key while the component is mounted.
#[hook]
pub fn use_keys() {
    let model = use_model_of(Parts::REST);
    use_effect_with((), move |()| {
        // The button or link that the pointer pressed last, unless a key moved the focus since.
        let pressed = Rc::new(RefCell::new(None::<Element>));
        let latest = Rc::clone(&pressed);
        let pointer = Listener::new(&window(), "pointerdown", move |event| {
            let on = event.target().and_then(|target| target.dyn_into::<Element>().ok());
            latest.replace(on.and_then(|on| on.closest(BUTTONS).ok().flatten()));
        });
        let listener = Listener::new(&window(), "keydown", move |event| {
            let Some(event) = event.dyn_ref::<KeyboardEvent>() else { return };
            // The focused list or menu has already handled the key.
            if event.default_prevented() || event.is_composing() {
                return;
            }
            let press = Press {
                code: event.code(),
                key: event.key(),
                has_control: event.ctrl_key() || event.meta_key(),
                has_shift: event.shift_key(),
                has_alt: event.alt_key(),
            };
            let now = model.now();
            let is_esc = press.code == "Escape";
            let is_palette = Chord::control("KeyK").matches(&press);
            if now.dialog.is_some() {
                // A dialog handles its own keys, and nothing behind it may move.
                if !is_esc && !is_palette {
                    return;
                }
            } else if is_typing() && !is_palette {
                if is_esc {
                    leave_input();
                }
                return;
            }
            // The browser presses the focused button itself.
            if MOVES_FOCUS.contains(&press.code.as_str()) {
                pressed.replace(None);
            }
            if matches!(press.code.as_str(), "Space" | "Enter") && has_button(pressed.borrow().as_ref()) {
                return;
            }
            let found = live_commands(&now)
                .find_map(|command| command.chords.iter().find(|chord| chord.matches(&press)).map(|c| (command, c)));
            if let Some((command, chord)) = found {
                event.prevent_default();
                // Shift may be part of typing the character: then it does not mean faster.
                let is_faster = press.has_shift && matches!(chord.key, Key::Code(_)) && chord.with_shift.is_none();
                (command.run)(&model, is_faster);
            }
        });
        move || drop((listener, pointer))
    });
}

/// Returns the focused element if it accepts text.
fn typing() -> Option<Element> {
    let element = document().active_element()?;
    let takes_text = match element.tag_name().as_str() {
        "TEXTAREA" | "SELECT" => true,
        "INPUT" => !matches!(element.get_attribute("type").as_deref(), Some("checkbox" | "radio" | "range" | "file")),
        _ => element.has_attribute("contenteditable"),
    };
    takes_text.then_some(element)
}

fn is_typing() -> bool {
    typing().is_some()
}

/// Keys that move the focus.
const MOVES_FOCUS: [&str; 5] = ["Tab", "ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"];

/// What Space and Enter press.
const BUTTONS: &str = "button, a, summary";

/// Returns whether a key is meant for the focused button or link, and not one that was merely clicked (`pressed`)
/// earlier. The pause button counts in any case: the command would press it twice.
fn has_button(pressed: Option<&Element>) -> bool {
    document().active_element().is_some_and(|element| {
        let is = |selector| element.matches(selector).unwrap_or(false);
        is(BUTTONS) && (pressed != Some(&element) || is(".live-bar *"))
    })
}

fn leave_input() {
    if let Some(input) = typing().and_then(|element| element.dyn_into::<web_sys::HtmlElement>().ok()) {
        let _ = input.blur();
    }
}
