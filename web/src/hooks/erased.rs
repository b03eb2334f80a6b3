//! A value whose type is known to those only who put it in and take it out.

use std::any::Any;
use std::rc::Rc;

/// What is still known of a value without its type.
trait Same: Any {
    fn is_same(&self, other: &dyn Any) -> bool;
}

impl<T: PartialEq + 'static> Same for T {
    fn is_same(&self, other: &dyn Any) -> bool {
        other.downcast_ref::<T>().is_some_and(|other| self == other)
    }
}

/// See the module. Cheap to clone; equal when type and value are.
#[derive(Clone)]
pub struct Erased(Rc<dyn Same>);

impl Erased {
    /// Forgets the type of a value.
    pub fn new<T: PartialEq + 'static>(value: T) -> Self {
        Self(Rc::new(value))
    }

    /// The value, for who knows its type.
    pub fn get<T: 'static>(&self) -> Option<&T> {
        let value: &dyn Any = &*self.0;
        value.downcast_ref()
    }
}

impl PartialEq for Erased {
    fn eq(&self, other: &Self) -> bool {
        self.0.is_same(&*other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_equal_when_type_and_value_are() {
        let value = Erased::new((1_u32, "a"));
        assert!(value == Erased::new((1_u32, "a")));
        assert!(value != Erased::new((2_u32, "a")));
        assert!(value != Erased::new((1_u64, "a")));
        assert_eq!(value.get(), Some(&(1_u32, "a")));
        assert_eq!(value.get::<u32>(), None);
    }
}
