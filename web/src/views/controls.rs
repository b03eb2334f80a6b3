//! Controls shared by the toolbars of several views.

use query::folding::{best_frame, short_name};
use query::{ColorBy, FrameText};
use trace::text::separators;
use web_sys::HtmlSelectElement;
use yew::prelude::*;

use crate::browser::{after_next_frame, use_effect_with};
use crate::hooks::ModelHandle;
use crate::model::{Action, Setting};
use crate::render::canvas::Size;
use crate::widgets::style::{pixels, set_style};

/// The colourings with their names.
const COLORS: [(ColorBy, &str); 6] = [
    (ColorBy::Site, "call site"),
    (ColorBy::Size, "size"),
    (ColorBy::Stream, "stream"),
    (ColorBy::Pool, "pool"),
    (ColorBy::Lifetime, "lifetime"),
    (ColorBy::Category, "category"),
];

/// Renders the menu that chooses what colours stand for.
pub fn color_menu(testid: &'static str, model: &ModelHandle) -> Html {
    let handle = model.clone();
    let choose = Callback::from(move |color| handle.dispatch(Action::Set(Setting::ColorBy(color))));
    menu(testid, "Colour by", &COLORS, model.view.settings.color_by, choose)
}

/// Renders a menu of exclusive choices.
pub fn menu<T: Copy + PartialEq + 'static>(
    testid: &'static str,
    label: &'static str,
    names: &'static [(T, &'static str)],
    now: T,
    choose: Callback<T>,
) -> Html {
    let onchange = Callback::from(move |event: Event| {
        let select = event.target_dyn_into::<HtmlSelectElement>();
        let chosen = select.and_then(|select| usize::try_from(select.selected_index()).ok());
        if let Some((value, _)) = chosen.and_then(|i| names.get(i)) {
            choose.emit(*value);
        }
    });
    html! {
        <label class="toolbar-field">
            <span>{ label }</span>
            <select class="toolbar-select" data-testid={testid} {onchange}>
                { for names.iter().map(|(value, name)| html! { <option selected={*value == now}>{ *name }</option> }) }
            </select>
        </label>
    }
}

/// Renders one of several exclusive choices.
pub fn choice(
    testid: &'static str,
    name: &'static str,
    title: &'static str,
    is_on: bool,
    choose: Callback<MouseEvent>,
) -> Html {
    html! {
        <button type="button" class="choice" aria-pressed={is_on.to_string()} {title} onclick={choose} data-testid={testid}>
            { name }
        </button>
    }
}

/// Returns a callback that sends an action.
pub fn sends(model: &ModelHandle, action: Action) -> Callback<MouseEvent> {
    let model = model.clone();
    Callback::from(move |_| model.dispatch(action.clone()))
}

/// Reports the first complete picture of the file, once it is on the screen.
#[hook]
pub fn use_first_picture(model: &ModelHandle, is_whole: bool) {
    let model = model.clone();
    use_effect_with((model.current, is_whole), move |(_, is_whole)| {
        if *is_whole {
            after_next_frame(move || model.dispatch(Action::FirstPicture));
        }
    });
}

/// Places a tooltip beside the pointer, on the sides with more room. It is anchored by its nearer corner, so it needs
/// no measuring and may grow.
///
/// On a narrow picture a finger may be what points: the tooltip stands at its side, and goes up from the lower end, so
/// that it covers neither what is under the finger nor the strips above the plot.
pub fn place_tip(tip: &NodeRef, at: (f64, f64), size: Size) {
    let is_narrow = size.width < NARROW;
    let away = if is_narrow { 28.0 } else { 14.0 };
    let hang = |near: &str, far: &str, at: f64, whole: f64| {
        let (side, other, distance) = if at < whole * MIDDLE { (near, far, at) } else { (far, near, whole - at) };
        set_style(tip, other, "auto");
        set_style(tip, side, &pixels((distance + away).round()));
    };
    hang("left", "right", at.0, size.width);
    if is_narrow {
        set_style(tip, "top", "auto");
        set_style(tip, "bottom", "4px");
    } else {
        hang("top", "bottom", at.1, size.height);
    }
    let room = if at.0 < size.width * MIDDLE { size.width - at.0 } else { at.0 } - away - 4.0;
    set_style(tip, "max-width", if is_narrow { pixels(room.max(0.0).round()) } else { String::new() }.as_str());
}

/// Where tooltips change to the other side, as a share of the picture.
const MIDDLE: f64 = 0.55;
/// A picture of fewer pixels has no room for a tooltip below or above the pointer.
const NARROW: f64 = 500.0;

/// Returns the line that identifies a stack in legends: the function, and the last two parts of its file's path.
pub fn site_line(stack: &[FrameText]) -> String {
    let Some(frame) = best_frame(stack) else { return "no stack recorded".to_owned() };
    let name = short_name(&frame.name, &frame.filename);
    if frame.line == 0 || frame.filename.is_empty() {
        return name.to_owned();
    }
    let cut = separators(&frame.filename).nth(1).map_or(0, |at| at + 1);
    let file = frame.filename.get(cut..).unwrap_or(&frame.filename);
    format!("{name} {file}:{}", frame.line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_is_labelled_with_its_program_line() {
        let frame = |name: &str, filename: &str, line, is_call_site| FrameText {
            name: name.to_owned(),
            filename: filename.to_owned(),
            line,
            library: String::new(),
            is_call_site,
        };
        assert_eq!(site_line(&[]), "no stack recorded");
        let stack = [
            frame("at::detail::empty_generic(c10::ArrayRef<long>)", "??", 0, false),
            frame("forward", "/home/me/models/gpt.py", 24, true),
        ];
        assert_eq!(site_line(&stack), "forward models/gpt.py:24");
        assert_eq!(site_line(&stack[..1]), "at::detail::empty_generic");
    }
}
