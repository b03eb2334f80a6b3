//! One view, or two with a splitter between them. Both share cursor, range and selection. Keys go to the view that was
//! focused last.

use trace::decimal::Decimal;
use web_sys::{Element, HtmlSelectElement, PointerEvent};
use yew::prelude::*;

use super::detail_bar::{awaiting, has_preview};
use crate::browser::use_effect_with;
use crate::deferred::{Deferred, Part};
use crate::hooks::{ModelHandle, use_model_of};
use crate::model::{Action, Parts, Split, Tab};
use crate::views::timeline::Timeline;
use crate::views::{TABS, panel_id};
use crate::widgets::icon::{Symbol, icon};
use crate::widgets::style::set_style;

/// Per cent by which an arrow key moves the splitter, without and with Shift.
const STEP: (i16, i16) = (2, 10);

/// Renders the view of a tab, or a message until it can be shown.
fn view(model: &ModelHandle, tab: Tab) -> Html {
    let missing = model.file().and_then(|file| file.missing_detail()).filter(|_| !has_preview(tab));
    match missing {
        Some(detail) => awaiting(detail),
        // The first view that nearly everybody sees.
        None if tab == Tab::Timeline => html! { <Timeline /> },
        None => html! { <Deferred part={Part::View(tab)} /> },
    }
}

/// The views.
#[component]
pub fn Views() -> Html {
    let model = use_model_of(Parts::REST);
    let host = use_node_ref();
    // While the splitter is dragged, only the panes change, not the model.
    let dragged = use_state_eq(|| None::<u8>);
    let (tab, split) = (model.view.tab, model.view.split);
    let percent = dragged.or(split.map(|split| split.percent)).unwrap_or(100);
    {
        let host = host.clone();
        use_effect_with(percent, move |percent| {
            set_style(&host, "--first", &percent.to_string());
            set_style(&host, "--second", &(100 - percent).to_string());
        });
    }
    // A list in either case, so that no view is created anew when a second one is opened or closed.
    let Some(split) = split else {
        let only = html! {
            <div key={tab.name()} id={panel_id(tab)} class="view-pane" role="tabpanel" tabindex="-1" aria-labelledby={format!("tab-{}", tab.name())}>
                { view(&model, tab) }
            </div>
        };
        return html! { <div class="view-host"><div class="view-halves" ref={host}>{ for [only] }</div></div> };
    };
    let (first, second) = if split.side.is_before() { (split.tab, tab) } else { (tab, split.tab) };
    let half = |of: Tab| {
        let focus = {
            let model = model.clone();
            move || model.dispatch(Action::FocusView(of))
        };
        let onfocusin = {
            let focus = focus.clone();
            Callback::from(move |_: FocusEvent| focus())
        };
        let onpointerdown = Callback::from(move |_: PointerEvent| focus());
        let class = classes!("view-pane", "is-half", (of == tab).then_some("has-keys"));
        html! {
            <div key={of.name()} id={panel_id(of)} {class} role="tabpanel" tabindex="-1" aria-labelledby={format!("tab-{}", of.name())}
                {onfocusin} {onpointerdown} data-testid={if of == first { "view-first" } else { "view-second" }} data-view={of.name()}>
                { half_head(&model, of, if of == first { second } else { first }) }
                { view(&model, of) }
            </div>
        }
    };
    html! {
        <div class="view-host">
            <div class={classes!("view-halves", if split.side.is_beside() { "is-beside" } else { "is-over" })} ref={host} data-testid="split">
                { for [half(first), splitter(&model, split, percent, &dragged), half(second)] }
            </div>
        </div>
    }
}

/// Renders the head of one of two views: a menu to choose the view, and a button that closes it.
fn half_head(model: &ModelHandle, tab: Tab, other: Tab) -> Html {
    let onchange = {
        let model = model.clone();
        Callback::from(move |event: Event| {
            let chosen = event.target_dyn_into::<HtmlSelectElement>().map(|select| select.value());
            let chosen = TABS.iter().find(|view| chosen.as_deref() == Some(view.tab.name()));
            if let Some(view) = chosen.filter(|view| view.tab != other) {
                model.dispatch(Action::FocusView(tab));
                model.dispatch(Action::SetTab(view.tab));
            }
        })
    };
    let on_close = {
        let model = model.clone();
        Callback::from(move |event: MouseEvent| {
            event.stop_propagation();
            model.dispatch(Action::FocusView(other));
            model.dispatch(Action::SetSplit(None));
        })
    };
    let title = TABS.iter().find(|view| view.tab == tab).map_or("", |view| view.title);
    html! {
        <div class="half-head">
            <select class="toolbar-select" aria-label="View" {onchange} data-testid="half-view">
                { for TABS.iter().map(|view| html! {
                    <option key={view.tab.name()} value={view.tab.name()} selected={view.tab == tab} disabled={view.tab == other}>{ view.title }</option>
                }) }
            </select>
            <button type="button" class="icon-button" aria-label={format!("Close {title}")} title={format!("Close {title}")} onclick={on_close} data-testid="half-close">
                { icon(Symbol::Cross) }
            </button>
        </div>
    }
}

/// Renders the splitter.
fn splitter(model: &ModelHandle, split: Split, percent: u8, dragged: &UseStateHandle<Option<u8>>) -> Html {
    let set = {
        let model = model.clone();
        move |percent: u8| {
            if let Some(split) = model.now().view.split {
                model.dispatch(Action::SetSplit(Some(split.with_percent(percent))));
            }
        }
    };
    let onpointerdown = Callback::from(|event: PointerEvent| {
        if let Some(line) = event.target_dyn_into::<Element>() {
            // Fails if the pointer is already gone: nothing to capture then.
            let _ = line.set_pointer_capture(event.pointer_id());
            event.prevent_default();
        }
    });
    let onpointermove = {
        let dragged = dragged.clone();
        Callback::from(move |event: PointerEvent| {
            let Some(line) = event.target_dyn_into::<Element>() else { return };
            if let Some(host) = line.parent_element().filter(|_| line.has_pointer_capture(event.pointer_id())) {
                // A small window stacks the views whatever the split says, so the shape of the splitter decides.
                let (own, all) = (line.get_bounding_client_rect(), host.get_bounding_client_rect());
                let share = if own.width() > own.height() {
                    (f64::from(event.client_y()) - all.top()) / all.height()
                } else {
                    (f64::from(event.client_x()) - all.left()) / all.width()
                };
                dragged.set(Some(split.with_percent(in_percent(share)).percent));
            }
        })
    };
    let onpointerup = {
        let (set, dragged) = (set.clone(), dragged.clone());
        Callback::from(move |_: PointerEvent| {
            if let Some(percent) = *dragged {
                set(percent);
                dragged.set(None);
            }
        })
    };
    let onkeydown = {
        let set = set.clone();
        Callback::from(move |event: KeyboardEvent| {
            if let Some(to) = moved(percent, &event.key(), event.shift_key()) {
                event.prevent_default();
                event.stop_propagation();
                set(to);
            }
        })
    };
    let ondblclick = Callback::from(move |_| set(50));
    let orientation = if split.side.is_beside() { "vertical" } else { "horizontal" };
    html! {
        <div key="splitter" class="splitter" role="separator" aria-orientation={orientation} aria-label="Size of the first view" tabindex="0"
            aria-valuenow={percent.to_string()} aria-valuemin={Split::LEAST.to_string()} aria-valuemax={Split::MOST.to_string()}
            {onpointerdown} {onpointermove} onpointerup={onpointerup.clone()} onpointercancel={onpointerup} {onkeydown} {ondblclick} data-testid="split-splitter" />
    }
}

/// Returns a share in per cent.
fn in_percent(share: f64) -> u8 {
    // Casts of floats saturate.
    Decimal::of(share.clamp(0.0, 1.0) * 100.0, 0).scaled() as u8
}

/// Returns where a key moves the splitter; `None` for any other key.
fn moved(percent: u8, key: &str, is_fast: bool) -> Option<u8> {
    let step = if is_fast { STEP.1 } else { STEP.0 };
    let to = match key {
        "ArrowLeft" | "ArrowUp" => i16::from(percent) - step,
        "ArrowRight" | "ArrowDown" => i16::from(percent) + step,
        "Home" => i16::from(Split::LEAST),
        "End" => i16::from(Split::MOST),
        _ => return None,
    };
    u8::try_from(to.clamp(i16::from(Split::LEAST), i16::from(Split::MOST))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_move_the_splitter_and_both_views_keep_some_room() {
        assert_eq!((moved(50, "ArrowLeft", false), moved(50, "ArrowDown", true)), (Some(48), Some(60)));
        assert_eq!(
            (moved(16, "ArrowUp", true), moved(84, "ArrowRight", true)),
            (Some(Split::LEAST), Some(Split::MOST))
        );
        assert_eq!((moved(50, "Home", false), moved(50, "End", false)), (Some(Split::LEAST), Some(Split::MOST)));
        assert_eq!(moved(50, "a", false), None);
        assert_eq!([-1.0, 0.333, 0.5, 7.0, f64::NAN].map(in_percent), [0, 33, 50, 100, 0]);
    }
}
