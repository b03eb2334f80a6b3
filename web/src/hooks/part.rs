//! Views as parts of others: one component of Yew's that is told what to draw.

use yew::functional::{Hook, HookContext};
use yew::prelude::*;

use super::erased::Erased;

/// Draws a part, with its hooks.
type Draw = fn(&mut HookContext, &Erased) -> Html;

/// Properties of [`Part`].
#[derive(Properties)]
pub struct PartProps {
    draw: Draw,
    given: Erased,
}

impl PartialEq for PartProps {
    fn eq(&self, other: &Self) -> bool {
        // Parts are told apart by their keys.
        self.given == other.given
    }
}

/// See the module.
#[component]
fn Part(props: &PartProps) -> Html {
    use_drawn(props.draw, &props.given)
}

/// A part's hooks are the component's.
fn use_drawn(draw: Draw, given: &Erased) -> Drawn<'_> {
    Drawn(draw, given)
}

struct Drawn<'a>(Draw, &'a Erased);

impl Hook for Drawn<'_> {
    type Output = Html;

    fn run(self, context: &mut HookContext) -> Html {
        (self.0)(context, self.1)
    }
}

/// A part with what is given to it. It is drawn again when something in it asks for it, or something else is given.
pub fn place<P: PartialEq + 'static>(draw: Draw, given: P) -> Html {
    // Two kinds of parts in one place must not take each other's hooks.
    let key = draw as usize;
    html! { <Part key={key} {draw} given={Erased::new(given)} /> }
}

/// Makes a hook that draws a view into a function that gives the view as a part:
///
/// ```text
/// part!(/// The status line.
///     pub fn status = use_status);
/// part!(/// A button.
///     pub fn copy_button(CopyProps) = use_copy_button);
/// ```
macro_rules! part {
    ($(#[$doc:meta])* $vis:vis fn $name:ident = $hook:ident) => {
        $(#[$doc])*
        $vis fn $name() -> yew::Html {
            $crate::hooks::part::place(|context, _| yew::functional::Hook::run($hook(), context), ())
        }
    };
    ($(#[$doc:meta])* $vis:vis fn $name:ident($props:ty) = $hook:ident) => {
        $(#[$doc])*
        $vis fn $name(given: $props) -> yew::Html {
            let draw = |context: &mut yew::functional::HookContext, given: &$crate::hooks::Erased| match given.get() {
                Some(given) => yew::functional::Hook::run($hook(given), context),
                None => yew::Html::default(),
            };
            $crate::hooks::part::place(draw, given)
        }
    };
}

pub(crate) use part;
