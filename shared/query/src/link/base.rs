//! The run that a view compares its own with.

use std::fmt;

use super::FileHash;
use super::percent::Encoded;
use wire::{is_link_token, is_session};

/// How the token of a shared trace begins in a link, as in its address.
const SHARED: &str = "s-";

/// A run that a link names beside its own, to compare the two.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BaseRun {
    /// The index of the device in its file.
    pub device: u32,
    /// What identifies it.
    pub id: RunId,
    /// The file's or the job's name.
    pub name: String,
}

/// What identifies a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RunId {
    /// Nothing but its name.
    #[default]
    Name,
    /// A file, by its bytes.
    File(FileHash),
    /// A session of the page's server.
    Session(String),
    /// A trace that the page's server shares, by its token.
    Shared(String),
}

impl BaseRun {
    /// Parses `0,0d6ab8c9…,job.pickle`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, ',');
        let device = parts.next()?.parse().ok()?;
        let id = match parts.next()? {
            "" => RunId::Name,
            id if is_session(id) => RunId::Session(id.to_owned()),
            id => match id.strip_prefix(SHARED).filter(|token| is_link_token(token)) {
                Some(token) => RunId::Shared(token.to_owned()),
                None => RunId::File(FileHash::parse(id)?),
            },
        };
        Some(Self { device, id, name: parts.next()?.to_owned() })
    }
}

impl fmt::Display for BaseRun {
    /// Formats the run as the value of a link's part.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},", self.device)?;
        match &self.id {
            RunId::Name => {}
            RunId::File(hash) => write!(f, "{hash}")?,
            RunId::Session(session) => write!(f, "{}", Encoded(session))?,
            RunId::Shared(token) => write!(f, "{SHARED}{}", Encoded(token))?,
        }
        write!(f, ",{}", Encoded(&self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_is_written_as_it_is_read() {
        let hash = FileHash::of_digest(&[7; 32]);
        let session = "abcdefghijklmnopqrstuvwxyz".to_owned();
        for id in [RunId::Name, RunId::File(hash), RunId::Session(session)] {
            let base = BaseRun { device: 3, id, name: "a, b & c.pickle".to_owned() };
            let decoded = super::super::percent::decode(&base.to_string()).unwrap();
            assert_eq!(BaseRun::parse(&decoded), Some(base));
        }
        for broken in ["", "0", "0,", "0,,", "x,,a", "0,abc,a", "0,s-,a"] {
            assert_eq!(BaseRun::parse(broken).filter(|base| !base.name.is_empty()), None, "{broken}");
        }
    }
}
