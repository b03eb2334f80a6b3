//! Values that cross the page unread.

use std::any::Any;
use std::cell::OnceCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::encoding;

/// A value as bytes, which is read when it is first looked into.
///
/// The code that reads a type is where it is looked into: for an answer that only the second module of the page shows, it is in that
/// module, and what starts the page is smaller. What a session tells of a run for another one is looked into nowhere in the page.
pub struct Sealed<T> {
    bytes: Vec<u8>,
    /// The value, once it was looked into. Of any type, so that the code that drops it is there, too.
    open: OnceCell<Box<dyn Any + Send>>,
    of: PhantomData<fn() -> T>,
}

impl<T> Sealed<T> {
    const fn of(bytes: Vec<u8>) -> Self {
        Self { bytes, open: OnceCell::new(), of: PhantomData }
    }
}

impl<T: Serialize> Sealed<T> {
    /// Seals a value.
    pub fn new(value: &T) -> Self {
        Self::of(encoding::encode(value))
    }
}

impl<T: DeserializeOwned + Default + Send + 'static> Deref for Sealed<T> {
    type Target = T;

    /// Returns the value; the default one for bytes that [`Sealed::new`] did not write.
    fn deref(&self) -> &T {
        let open = self.open.get_or_init(|| Box::new(encoding::decode::<T>(&self.bytes).unwrap_or_default()));
        match open.downcast_ref() {
            Some(value) => value,
            None => unreachable!("a sealed value is opened as what it is"),
        }
    }
}

impl<T> Clone for Sealed<T> {
    fn clone(&self) -> Self {
        Self::of(self.bytes.clone())
    }
}

impl<T> PartialEq for Sealed<T> {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl<T> Eq for Sealed<T> {}

impl<T: DeserializeOwned + Default + fmt::Debug + Send + 'static> fmt::Debug for Sealed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.deref().fmt(f)
    }
}

impl<T> Serialize for Sealed<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serde_bytes::serialize(&self.bytes, serializer)
    }
}

impl<'de, T> Deserialize<'de> for Sealed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self::of(serde_bytes::deserialize(deserializer)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_profile::RunProfile;

    #[test]
    fn a_value_is_read_where_it_is_looked_into() {
        let run = RunProfile { name: "a.pickle".to_owned(), device: 3, ..RunProfile::default() };
        let sealed = Sealed::new(&run);
        let arrived: Sealed<RunProfile> = encoding::decode(&encoding::encode(&sealed)).unwrap();
        assert_eq!((&arrived, &*arrived), (&sealed, &run));
        let garbled: Sealed<RunProfile> = encoding::decode(&encoding::encode(&vec![1_u8, 2])).unwrap();
        assert_eq!(*garbled, RunProfile::default(), "what is no value is none");
    }
}
