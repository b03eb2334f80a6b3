//! Random kills, damage and garbage, and a load: few in `tests/run`, many in `just soak` ([`tests::soak`]).

mod flips;
mod garbage;
mod kills;
mod load;
