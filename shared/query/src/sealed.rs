//! Values that cross the page unread.

use std::cell::OnceCell;
use std::fmt;
use std::ops::Deref;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::encoding;

/// A value as bytes, which is read when it is first looked into.
///
/// The code that reads a type is where it is looked into: for an answer that only the second module of the page shows, it is in that
/// module, and what starts the page is smaller. What a session tells of a run for another one is looked into nowhere in the page.
#[derive(Clone)]
pub struct Sealed<T> {
    bytes: Vec<u8>,
    open: OnceCell<Box<T>>,
}

impl<T: Serialize> Sealed<T> {
    /// Seals a value.
    pub fn new(value: &T) -> Self {
        Self { bytes: encoding::encode(value), open: OnceCell::new() }
    }
}

impl<T: DeserializeOwned + Default> Deref for Sealed<T> {
    type Target = T;

    /// Returns the value; the default one for bytes that [`Sealed::new`] did not write.
    fn deref(&self) -> &T {
        self.open.get_or_init(|| Box::new(encoding::decode(&self.bytes).unwrap_or_default()))
    }
}

impl<T> PartialEq for Sealed<T> {
    fn eq(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl<T> Eq for Sealed<T> {}

impl<T: DeserializeOwned + Default + fmt::Debug> fmt::Debug for Sealed<T> {
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
        Ok(Self { bytes: serde_bytes::deserialize(deserializer)?, open: OnceCell::new() })
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
        let other: Sealed<RunProfile> = encoding::decode(&encoding::encode(&vec![1_u8, 2])).unwrap();
        assert_eq!(*other, RunProfile::default(), "what is no value is none");
    }
}
