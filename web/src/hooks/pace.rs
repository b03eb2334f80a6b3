//! Values that change faster than what depends on them is worth.

use yew::prelude::*;

use crate::browser::Timeout;

/// Returns a value that follows another one, but changes at most once in so many milliseconds. It ends with the latest.
#[hook]
pub fn use_paced<T: Clone + PartialEq + 'static>(value: T, every_ms: i32) -> T {
    let paced = use_state_eq(|| value.clone());
    let latest = use_mut_ref(|| value.clone());
    let (timer, is_waiting) = (use_mut_ref(|| None::<Timeout>), use_mut_ref(|| false));
    *latest.borrow_mut() = value.clone();
    {
        let paced = paced.clone();
        use_effect_with(value, move |value| {
            if *paced == *value || is_waiting.replace(true) {
                return;
            }
            let set = paced.setter();
            *timer.borrow_mut() = Some(Timeout::new(every_ms, move || {
                is_waiting.replace(false);
                set.set(latest.borrow().clone());
            }));
        });
    }
    (*paced).clone()
}
