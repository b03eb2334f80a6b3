//! Where sessions are stored: what every store must do, and the program with its segments in an object store.

mod contract;
mod objects;
