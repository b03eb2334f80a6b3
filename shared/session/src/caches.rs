//! What was built for earlier questions about one device, kept by type.
//!
//! A question that keeps something between two answers has a type for it that implements [`Cache`], beside its
//! computation. Nothing lists these types: [`Caches::of`] makes one when it is first asked for.

use std::any::{Any, TypeId};
use std::fmt;

use rustc_hash::FxHashMap;

/// Something that was built for a question, and can be built again.
///
/// It is no `Debug`: the table of this trait would keep the formatting of every index in the page's engine.
pub(super) trait Cache: Any {
    /// Returns the approximate memory use in bytes; 0 for what is small whatever the trace.
    fn bytes(&self) -> usize;

    /// Forgets what depends on the categories of allocations: the user's rules have changed.
    fn forget_categories(&mut self);
}

/// The caches of one device.
#[derive(Default)]
pub(super) struct Caches {
    kept: FxHashMap<TypeId, Box<dyn Cache>>,
}

impl fmt::Debug for Caches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caches").field("kept", &self.kept.len()).finish()
    }
}

impl Caches {
    /// Returns the cache of a type; an empty one at first.
    pub(super) fn of<C: Cache + Default>(&mut self) -> &mut C {
        let kept = self.kept.entry(TypeId::of::<C>()).or_insert_with(|| Box::<C>::default());
        let kept: &mut dyn Any = &mut **kept;
        match kept.downcast_mut() {
            Some(cache) => cache,
            None => unreachable!("a cache is kept under its own type"),
        }
    }

    /// Calls `run` with the cache of a type and with the others. Among them, the cache of that type is empty meanwhile.
    pub(super) fn with<C: Cache + Default, T>(&mut self, run: impl FnOnce(&mut C, &mut Self) -> T) -> T {
        let mut cache = std::mem::take(self.of::<C>());
        let result = run(&mut cache, self);
        *self.of::<C>() = cache;
        result
    }

    /// Forgets what depends on the categories of allocations.
    pub(super) fn forget_categories(&mut self) {
        self.kept.values_mut().for_each(|cache| cache.forget_categories());
    }

    /// Returns the approximate memory use in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.kept.values().map(|cache| cache.bytes()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq)]
    struct Numbers(Vec<u64>);

    #[derive(Debug, Default, PartialEq)]
    struct Names(Vec<String>);

    impl Cache for Numbers {
        fn bytes(&self) -> usize {
            size_of_val(&*self.0)
        }

        fn forget_categories(&mut self) {}
    }

    impl Cache for Names {
        fn bytes(&self) -> usize {
            self.0.len()
        }

        fn forget_categories(&mut self) {
            self.0.clear();
        }
    }

    #[test]
    fn each_type_has_a_cache_of_its_own() {
        let mut caches = Caches::default();
        caches.of::<Numbers>().0.push(7);
        let both = caches.with(|names: &mut Names, others| {
            names.0.push("seven".to_owned());
            assert_eq!(*others.of::<Names>(), Names::default(), "it is not there twice");
            others.of::<Numbers>().0.len() + names.0.len()
        });
        assert_eq!((both, caches.bytes()), (2, 9));
        caches.forget_categories();
        assert_eq!((caches.of::<Numbers>().0.len(), caches.of::<Names>().0.len()), (1, 0));
    }
}
