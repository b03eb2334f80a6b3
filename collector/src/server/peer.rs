//! The client of a connection.

use std::net::IpAddr;

/// The address of the client that sent a request; each request carries it in its extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Peer(pub(super) IpAddr);

/// Marks a request that came over this server's own TLS, in its extensions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Encrypted;
