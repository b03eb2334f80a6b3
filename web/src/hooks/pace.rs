//! Values that change faster than what depends on them is worth.

use yew::prelude::*;

use crate::browser::{Timeout, clock_ms, use_effect_with};

/// Returns a value that follows another one, but changes at most once in so many milliseconds: at once after a rest, and in the end
/// to the latest.
#[hook]
pub fn use_paced<T: Clone + PartialEq + 'static>(value: T, every_ms: i32) -> T {
    let paced = use_state_eq(|| value.clone());
    let latest = use_mut_ref(|| value.clone());
    let (timer, changed_ms) = (use_mut_ref(|| None::<Timeout>), use_mut_ref(|| f64::NEG_INFINITY));
    *latest.borrow_mut() = value.clone();
    {
        let paced = paced.clone();
        use_effect_with(value, move |value| {
            if *paced == *value {
                return;
            }
            let rest_ms = *changed_ms.borrow() + f64::from(every_ms) - clock_ms();
            let follow = {
                let (set, changed_ms) = (paced.setter(), changed_ms.clone());
                move || {
                    *changed_ms.borrow_mut() = clock_ms();
                    set.set(latest.borrow().clone());
                }
            };
            if rest_ms <= 0.0 {
                follow();
            } else {
                // Replaces the timer of an earlier change. Casts of floating point saturate.
                *timer.borrow_mut() = Some(Timeout::new(rest_ms.ceil() as i32, follow));
            }
        });
    }
    (*paced).clone()
}
