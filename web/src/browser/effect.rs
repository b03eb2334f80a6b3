//! Effects of components, compiled once.

use std::any::Any;
use std::rc::Rc;

use yew::functional::{TearDown, hook};

/// What an effect depends on.
trait Dependencies: Any {
    fn is(&self, other: &dyn Any) -> bool;
}

impl<D: PartialEq + 'static> Dependencies for D {
    fn is(&self, other: &dyn Any) -> bool {
        other.downcast_ref() == Some(self)
    }
}

struct Erased(Rc<dyn Dependencies>);

impl PartialEq for Erased {
    fn eq(&self, other: &Self) -> bool {
        self.0.is(&*other.0)
    }
}

type Effect = Box<dyn FnOnce(&Erased) -> Box<dyn FnOnce()>>;

/// Runs an effect after the component was drawn for the first time, and whenever what it depends on has changed: the hook of Yew with
/// this name, which would be compiled for the types of each effect.
#[hook]
pub fn use_effect_with<D, F, T>(dependencies: D, effect: F)
where
    D: PartialEq + 'static,
    F: FnOnce(&D) -> T + 'static,
    T: TearDown,
{
    let dependencies = Rc::new(dependencies);
    let own = Rc::clone(&dependencies);
    let effect: Effect = Box::new(move |_| {
        let end = effect(&own);
        Box::new(move || end.tear_down())
    });
    yew::functional::use_effect_with(Erased(dependencies), effect);
}
