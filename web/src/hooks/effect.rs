//! Effects: what is done after a view was drawn.

use yew::functional::{Hook, TearDown};

use super::erased::Erased;

/// Ends an effect.
type End = Box<dyn FnOnce()>;
/// Runs one, if what it depends on is what it was made for.
type Run = Box<dyn FnOnce(&Erased) -> Option<End>>;

/// Runs `effect` after the first drawing, and after each that changed `deps`; what it gives is run before the next, and
/// when the view goes away. Yew's hook of this name, made once.
pub fn use_effect_with<T, D>(deps: T, effect: impl FnOnce(&T) -> D + 'static) -> impl Hook<Output = ()>
where
    T: PartialEq + 'static,
    D: TearDown,
{
    let run: Run = Box::new(move |deps| {
        let end = effect(deps.get()?);
        Some(Box::new(move || end.tear_down()))
    });
    use_erased(Erased::new(deps), run)
}

/// The one effect that Yew knows.
fn use_erased(deps: Erased, run: Run) -> impl Hook<Output = ()> {
    yew::functional::use_effect_with(deps, move |deps: &Erased| {
        let end = run(deps);
        move || {
            if let Some(end) = end {
                end();
            }
        }
    })
}
