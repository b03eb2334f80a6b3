//! Listens to the keyboard for the whole page.

use std::cell::Cell;
use std::rc::Rc;

use wasm_bindgen::JsCast;
use web_sys::{Element, KeyboardEvent};
use yew::prelude::*;

use super::command::{Chord, Key, Press};
use super::registry::live_commands;
use crate::browser::{Listener, document, window};
use crate::hooks::use_model;

/// Runs the command whose key is pressed, as long as the component is there.
#[hook]
pub fn use_keys() {
    let model = use_model();
    use_effect_with((), move |()| {
        // Whether the focus is where the pointer has put it.
        let is_pointed = Rc::new(Cell::new(false));
        let pointed = Rc::clone(&is_pointed);
        let pointer = Listener::new(&window(), "pointerdown", move |_| pointed.set(true));
        let listener = Listener::new(&window(), "keydown", move |event| {
            let Some(event) = event.dyn_ref::<KeyboardEvent>() else { return };
            // A list or a menu that has the focus has used the key already.
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
                // Behind a dialog nothing moves, and it takes its own keys.
                if !is_esc && !is_palette {
                    return;
                }
            } else if is_typing() && !is_palette {
                if is_esc {
                    leave_input();
                }
                return;
            }
            // A button that has the focus is pressed by it.
            is_pointed.set(is_pointed.get() && !MOVES_FOCUS.contains(&press.code.as_str()));
            if press.code == "Space" && has_button(is_pointed.get()) {
                return;
            }
            let found = live_commands(&now)
                .find_map(|command| command.chords.iter().find(|chord| chord.matches(&press)).map(|c| (command, c)));
            if let Some((command, chord)) = found {
                event.prevent_default();
                // Shift is part of typing some characters: it makes nothing faster there.
                let is_faster = press.has_shift && matches!(chord.key, Key::Code(_)) && chord.with_shift.is_none();
                (command.run)(&model, is_faster);
            }
        });
        move || drop((listener, pointer))
    });
}

/// The element that has the keyboard, if text goes into it.
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

/// Keys by which the focus goes elsewhere.
const MOVES_FOCUS: [&str; 5] = ["Tab", "ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"];

/// Whether a key is meant for the button or link that has the focus. One that was clicked a while ago is not meant. The
/// pause button itself is, however it came by the focus: it would be pressed twice.
fn has_button(is_pointed: bool) -> bool {
    document().active_element().is_some_and(|element| {
        let is_button = matches!(element.tag_name().as_str(), "BUTTON" | "A" | "SUMMARY");
        is_button && (!is_pointed || element.matches(".live-bar *").unwrap_or(false))
    })
}

fn leave_input() {
    if let Some(input) = typing().and_then(|element| element.dyn_into::<web_sys::HtmlElement>().ok()) {
        let _ = input.blur();
    }
}
