//! The pins in the details: their names, and what changed between two of them.

use std::rc::Rc;

use query::{AllocationDetail, Answer, DeviceSummary, StateAt};
use trace::limits::{LINK_PIN_CHARS, LINK_PINS};
use trace::units::{Bytes, Count, Micros};
use web_sys::HtmlSelectElement;
use yew::prelude::*;

use super::facts::{act, fact, facts};
use crate::hooks::{ModelHandle, use_model_of, use_pin_states};
use crate::model::{Action, Parts, Pin, Selection};
use crate::views::controls::{sends, site_line};
use crate::widgets::bytes_text::change_text;
use crate::widgets::draft_field::DraftField;
use crate::widgets::format::moment;
use crate::widgets::icon::{Symbol, icon};

/// Returns a pin for an allocation, named after its size and its line.
pub fn pin_of_allocation(detail: &AllocationDetail) -> Pin {
    let name = format!("{} {}", Bytes(detail.requested), site_line(&detail.alloc_stack));
    Pin::new(detail.allocated_at.unwrap_or(0), Some(detail.id), &name)
}

/// Returns a pin for a moment, named `peak`, `start`, or after the event that leads to it.
pub fn pin_of_moment(device: Option<&DeviceSummary>, state: &StateAt) -> Pin {
    let is_peak = device.is_some_and(|device| device.peak_position == state.position && device.events > 0);
    let name = match &state.event {
        _ if is_peak => format!("peak, {}", Bytes(state.totals.requested)),
        Some(event) => format!("{} {}", event.action.replace('_', " "), Bytes(event.size)),
        None => "start".to_owned(),
    };
    Pin::new(state.position, None, &name)
}

/// What changed from one moment to a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Events in between.
    pub events: u32,
    /// Microseconds in between; `None` if times were not recorded.
    pub us: Option<i64>,
    /// The changes of the requested, allocated, active and reserved bytes, in this order.
    pub bytes: [i64; 4],
}

/// Returns what changed between two moments, from the earlier to the later one.
pub fn measure(a: &StateAt, b: &StateAt, has_times: bool) -> Measured {
    let (a, b) = if a.position <= b.position { (a, b) } else { (b, a) };
    let change = |from: u64, to: u64| i64::try_from(i128::from(to) - i128::from(from)).unwrap_or(0);
    let (from, to) = (&a.totals, &b.totals);
    Measured {
        events: b.position - a.position,
        us: has_times.then(|| (b.time_us - a.time_us).round() as i64),
        bytes: [
            change(from.requested, to.requested),
            change(from.allocated, to.allocated),
            change(from.active, to.active),
            change(from.reserved, to.reserved),
        ],
    }
}

/// Moves the cursor to a pin, and selects its allocation.
pub fn go_to_pin(model: &ModelHandle, pin: &Pin) {
    model.dispatch(Action::SetCursor(pin.position));
    if let Some(id) = pin.allocation {
        model.dispatch(Action::Select(Selection::Allocation(id)));
    }
}

/// The list of pins; empty without any.
#[component]
pub fn PinsPane() -> Html {
    let model = use_model_of(Parts::PLACE);
    let states = use_pin_states(&model);
    // The indices of the two pins between which changes are measured; the last two until others are chosen.
    let chosen = use_state_eq(|| None::<(usize, usize)>);
    let pins = &model.view.pins;
    if pins.is_empty() {
        return Html::default();
    }
    let has_times = model.device().is_some_and(|device| device.has_times);
    let state = |i: usize| states.get(i).and_then(|answer| state_in(answer.as_ref()));
    let rows = pins.iter().enumerate().map(|(i, pin)| {
        let on_go = {
            let (model, pin) = (model.clone(), pin.clone());
            Callback::from(move |_: MouseEvent| go_to_pin(&model, &pin))
        };
        let on_rename = {
            let model = model.clone();
            Callback::from(move |name| model.dispatch(Action::RenamePin(i, name)))
        };
        let moment = match state(i).filter(|_| has_times) {
            Some(state) => format!("event {} · {}", Count(pin.position.into()), moment(state.time_us)),
            None => format!("event {}", Count(pin.position.into())),
        };
        let remove = format!("Remove pin {}", i + 1);
        html! {
            <li class="pin-row" key={format!("{}-{:?}", pin.position, pin.allocation)} data-testid="pin" data-position={pin.position.to_string()}>
                <button type="button" class="pin-number" title="Go to this pin" onclick={on_go} data-testid="pin-go">{ i + 1 }</button>
                <DraftField value={pin.name.clone()} on_finish={on_rename} name={format!("Name of pin {}", i + 1)}
                    placeholder="Name" most={LINK_PIN_CHARS} test_id="pin-name" />
                <span class="pin-moment">{ moment }</span>
                <button type="button" class="icon-button" aria-label={remove.clone()} title={remove} onclick={sends(&model, Action::TogglePin(pin.clone()))} data-testid="pin-remove">
                    { icon(Symbol::Cross) }
                </button>
            </li>
        }
    });
    let last = pins.len() - 1;
    let (a, b) = chosen.filter(|(a, b)| *a.max(b) <= last && a != b).unwrap_or((last.saturating_sub(1), last));
    let choose = |is_first: bool| {
        let chosen = chosen.clone();
        Callback::from(move |event: Event| {
            let Some(select) = event.target_dyn_into::<HtmlSelectElement>() else { return };
            let picked = usize::try_from(select.selected_index()).unwrap_or(0);
            // Choosing the same pin twice swaps the two.
            chosen.set(Some(match is_first {
                true if picked == b => (b, a),
                true => (picked, b),
                false if picked == a => (b, a),
                false => (a, picked),
            }));
        })
    };
    let options = |at: usize| {
        pins.iter().enumerate().map(move |(i, pin)| {
            html! { <option selected={i == at}>{ format!("{} {}", i + 1, pin.name) }</option> }
        })
    };
    let measured = state(a).zip(state(b)).map(|(from, to)| measure(from, to, has_times));
    let range = pins.get(a).zip(pins.get(b)).map(|(from, to)| (from.position, to.position));
    html! {
        <section class="pins" aria-label="Pins" data-testid="pins">
            <header class="section-head"><h3>{ "Pins" }</h3><span class="dim">{ format!("{} of {LINK_PINS}", pins.len()) }</span></header>
            <ol class="pin-list">{ for rows }</ol>
            if last > 0 {
                <p class="pin-measure">
                    <label>{ "From " }<select onchange={choose(true)} data-testid="pin-from">{ for options(a) }</select></label>
                    <label>{ " to " }<select onchange={choose(false)} data-testid="pin-to">{ for options(b) }</select></label>
                </p>
                if let Some(measured) = measured {
                    <div data-testid="pin-measured">{ facts(measured_facts(measured)) }</div>
                }
                <div class="acts">
                    { act("Select as range", "pin-range", "Select what is between the two as the range",
                        range.filter(|(a, b)| a != b).map(|range| sends(&model, Action::SetRange(Some(range))))) }
                    { act("Compare", "pin-compare", "Show what changed from the one to the other",
                        range.filter(|(a, b)| a != b).map(|(a, b)| sends(&model, Action::CompareRange(a, b)))) }
                </div>
            }
        </section>
    }
}

fn measured_facts(measured: Measured) -> Vec<Html> {
    let names = ["Requested", "Allocated", "Active", "Reserved"];
    let mut rows = vec![fact("Events", Count(measured.events.into()).to_string())];
    rows.extend(measured.us.map(|us| {
        let exact = format!("{} µs", Count(us.unsigned_abs()));
        fact("Time", html! { <span title={exact}>{ Micros(us).to_string() }</span> })
    }));
    rows.extend(names.into_iter().zip(measured.bytes).map(|(name, bytes)| fact(name, change_text(bytes))));
    rows
}

fn state_in(answer: Option<&Rc<Answer>>) -> Option<&StateAt> {
    match answer.map(Rc::as_ref) {
        Some(Answer::State(state)) => Some(state),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use trace::totals::Totals;

    use super::super::lifetime::tests::detail;
    use super::*;

    fn state(position: u32, time_us: f64, allocated: u64, reserved: u64) -> StateAt {
        let totals = Totals { requested: allocated, allocated, active: allocated, reserved, ..Totals::default() };
        StateAt { position, time_us, wall_us: 0, totals, event: None }
    }

    #[test]
    fn a_measure_is_exact_and_from_the_earlier_to_the_later() {
        let (a, b) = (state(10, 1000.0, 65_712_455_681, 7), state(310, 4000.5, 65_712_455_680, 9));
        let want = Measured { events: 300, us: Some(3001), bytes: [-1, -1, -1, 2] };
        assert_eq!(measure(&a, &b, true), want);
        assert_eq!(measure(&b, &a, true), want, "whichever was chosen first");
        assert_eq!(measure(&a, &b, false).us, None);
    }

    #[test]
    fn a_pin_is_named_by_what_is_pinned() {
        let pin = pin_of_allocation(&detail());
        assert_eq!((pin.allocation, pin.name.as_str()), (Some(7), "0.98 KiB no stack recorded"));
        assert_eq!(pin_of_moment(None, &state(0, 0.0, 0, 0)).name, "start");
    }
}
