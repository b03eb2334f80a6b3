//! The library that a training job loads: C functions around the recorder, the publisher and the caching allocator,
//! without the server.
//!
//! Every function that C calls catches what panics: nothing unwinds into the caller.

pub mod allocator;
