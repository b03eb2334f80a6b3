//! A trace that another site offers, and that is opened only if the person agrees.

/// A trace from another site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The site's origin, as the browser writes it.
    pub origin: String,
    /// The name of the file.
    pub name: String,
    /// How it is offered.
    pub by: OfferedBy,
}

/// How a trace is offered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OfferedBy {
    /// By its URL, in the address of this page.
    Address {
        /// The URL, as the browser writes it.
        url: String,
    },
    /// By a message from the page that opened or frames this one.
    Message {
        /// Its size.
        bytes: u64,
    },
}
