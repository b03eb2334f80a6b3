//! What the devices are, by environment variables. A value that can't be read counts as not given.
//!
//! | variable | is | without it |
//! |---|---|---|
//! | `FAKECUDA_DEVICES` | how many devices there are | 1 |
//! | `FAKECUDA_CAPACITY` | bytes of each | 80 GiB |
//! | `FAKECUDA_CONTEXT_BYTES` | bytes that a context takes | 0 |
//! | `FAKECUDA_OTHER_BYTES` | bytes that another process holds | 0 |
//! | `FAKECUDA_VERSION` | the driver's CUDA version, as 12040 | 12040 |
//! | `FAKECUDA_MANAGED` | 0: the devices can't prefetch unified memory | 1 |
//! | `FAKECUDA_DESCENDING` | 1: high addresses are handed out before low ones | 0 |
//! | `FAKECUDA_REUSE` | 0: no address is handed out twice | 1 |
//! | `FAKECUDA_FAIL` | calls that fail: `symbol:after:times:code`, separated by commas | none |

use crate::faults::Fault;

/// What the environment says.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) devices: u64,
    pub(crate) capacity: u64,
    pub(crate) context_bytes: u64,
    pub(crate) other_bytes: u64,
    pub(crate) version: i32,
    pub(crate) can_manage: bool,
    pub(crate) is_descending: bool,
    pub(crate) reuses_addresses: bool,
    pub(crate) faults: Vec<Fault>,
}

impl Settings {
    pub(crate) fn from_environment() -> Self {
        let faults = std::env::var("FAKECUDA_FAIL").unwrap_or_default();
        Self {
            // Each device takes addresses; eight fit.
            devices: number("FAKECUDA_DEVICES", 1).min(8),
            capacity: number("FAKECUDA_CAPACITY", 80 << 30),
            context_bytes: number("FAKECUDA_CONTEXT_BYTES", 0),
            other_bytes: number("FAKECUDA_OTHER_BYTES", 0),
            version: number("FAKECUDA_VERSION", 12040).try_into().unwrap_or(0),
            can_manage: number("FAKECUDA_MANAGED", 1) != 0,
            is_descending: number("FAKECUDA_DESCENDING", 0) != 0,
            reuses_addresses: number("FAKECUDA_REUSE", 1) != 0,
            faults: faults.split(',').filter_map(Fault::parse).collect(),
        }
    }
}

fn number(variable: &str, without: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(without)
}
