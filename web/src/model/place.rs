//! Where the page runs, which decides what it offers.

/// Where the page runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// On its server, in a tab of its own.
    #[default]
    Server,
    /// On its server, opened or framed by a page of another site that sends the trace. Such a page may lay itself over this
    /// one and so guide a person's clicks: nothing here lists, changes or uploads anything. A shared trace is shown by its
    /// link.
    Embedded,
    /// In one file with everything inside, without a server.
    OneFile,
}

impl Place {
    /// Returns whether the page uses the API of its server.
    pub const fn has_server(self) -> bool {
        matches!(self, Self::Server)
    }
}
