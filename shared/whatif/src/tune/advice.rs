//! The recommendation of a search.

use crate::AMPLE;
use query::setting::left_out;
use query::whatif::{Advice, Bounds, Goal, Outcome};
use trace::text::Escaped;
use trace::units::{Bytes, Count, compared, counted, counted_as, distinguished};

/// The least saving that is worth a setting, as a divisor of what the recorded settings cost: a hundredth.
pub(super) const WORTH: u64 = 100;

/// Appended if a request is served that failed in the recording.
const UNKNOWN: &str = "What the program would have requested next is not known: a later request may not fit.";

/// Adds to an advice which of the recorded settings its line leaves out.
pub(super) fn with_omissions(mut advice: Advice, recorded: &str) -> Advice {
    let without = advice.conf.as_deref().map(|conf| left_out(recorded, conf)).unwrap_or_default();
    if !without.is_empty() {
        advice.cost += &format!(" It leaves out {} of the recorded settings.", Escaped(&without.join(" and ")));
    }
    advice
}

/// Compares the best outcome, that of `conf`, with that of the recorded settings, on a device of `capacity` bytes.
pub(super) fn advice(
    goal: Goal,
    (conf, best): (&str, &Outcome),
    recorded: &Outcome,
    (bounds, capacity): (&Bounds, u64),
) -> Advice {
    let none = |text: String| Advice { conf: None, text, cost: String::new() };
    if best.fails() {
        return none(does_not_fit(best, bounds, capacity));
    }
    let live = format!("{} were in live tensors at the peak, which no setting changes", Bytes(bounds.exact_fit));
    let saves = |before: u64, after: u64| before > after && before - after >= (before / WORTH).max(1);
    let (reserved, calls) =
        ((recorded.peak_reserved, best.peak_reserved), (recorded.driver_calls(), best.driver_calls()));
    if recorded.fails() {
        let (reserved, calls) = (Bytes(reserved.1), counted(calls.1, "call"));
        let retries = counted_as(best.retries, "retry", "retries");
        let text = match best.stopped_at {
            Some(event) => {
                let number = Count(u64::from(event) + 1);
                format!(
                    "The request that failed at event {number} is served, with {reserved} reserved at the peak. {UNKNOWN}"
                )
            }
            None => format!("No request fails, with {reserved} reserved at the peak."),
        };
        // The whole recording is no measure for its beginning.
        let until = if best.stopped_at.is_some() { "Until then it" } else { "It" };
        let cost = format!("{until} takes {calls} of the driver and {retries}.");
        return Advice { conf: Some(conf.to_owned()), text, cost };
    }
    let text = match goal {
        Goal::Reserved if saves(reserved.0, reserved.1) => {
            let (after, before) = compared(Bytes(reserved.1), Bytes(reserved.0));
            format!("Reserves {after} at the peak instead of {before}.")
        }
        Goal::Reserved => {
            let kept = Bytes(reserved.0);
            return none(format!("No setting saves as much as 1 %: the run reserves {kept}, and {live}."));
        }
        Goal::Calls if saves(calls.0, calls.1) => {
            format!("Needs {} of the driver instead of {}.", counted(calls.1, "call"), Count(calls.0))
        }
        Goal::Calls => {
            let made = counted(calls.0, "call");
            return none(format!("No setting saves as much as 1 % of the {made} of the driver."));
        }
        Goal::Fit if recorded.retries > best.retries => {
            let (before, after) = (Count(recorded.retries), counted_as(best.retries, "retry", "retries"));
            format!("It fits with {after} instead of {before}.")
        }
        Goal::Fit => return none("The recorded settings fit, without any retry.".to_owned()),
    };
    Advice {
        conf: Some(conf.to_owned()),
        text,
        cost: cost(goal, reserved, calls) + &format!(" {}.", capitalized(&live)),
    }
}

/// Describes what a setting costs apart from its goal.
fn cost(goal: Goal, reserved: (u64, u64), calls: (u64, u64)) -> String {
    let more_calls = calls.1 > calls.0;
    match goal {
        Goal::Calls if reserved.1 > reserved.0 => {
            let (after, before) = compared(Bytes(reserved.1), Bytes(reserved.0));
            match after == before {
                true => format!("It reserves little more: {after} at the peak."),
                false => format!("It reserves {after} at the peak instead of {before}."),
            }
        }
        Goal::Calls => format!("It reserves no more: {} at the peak.", Bytes(reserved.1)),
        _ if more_calls => {
            format!("It costs time: {} of the driver instead of {}.", counted(calls.1, "call"), Count(calls.0))
        }
        _ if calls.1 < calls.0 => {
            format!("It needs fewer calls of the driver: {} instead of {}.", Count(calls.1), Count(calls.0))
        }
        _ => format!("It needs as many calls of the driver: {}.", Count(calls.1)),
    }
}

fn does_not_fit(best: &Outcome, bounds: &Bounds, capacity: u64) -> String {
    let needed = Bytes(bounds.served);
    // The other bound, shown next to this one, is that of the requests that were served.
    let with = if bounds.served > bounds.exact_fit { "with the request that failed, " } else { "" };
    if bounds.served > capacity {
        let (needed, had) = distinguished(Bytes(bounds.served), Bytes(capacity));
        return format!(
            "No setting helps: {with}the run needs {needed} in live tensors at once, and the process can have {had}."
        );
    }
    // A run takes no more than there is, so it began with that.
    if best.peak_reserved > capacity {
        let (reserved, had) = distinguished(Bytes(best.peak_reserved), Bytes(capacity));
        return format!(
            "No setting can be said to fit: {reserved} was reserved before the first event, and the process can have {had}. \
             Record from the start of the program to know."
        );
    }
    let on = if capacity < AMPLE { format!(" on {}", Bytes(capacity)) } else { String::new() };
    format!(
        "None of the settings that were tried fits{on}, although {with}the run needs no more than {needed} in live tensors at \
         once."
    )
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
