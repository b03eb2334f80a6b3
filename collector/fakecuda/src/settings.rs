//! Environment variables that configure the devices. An unreadable value counts as missing.
//!
//! | variable | meaning | default |
//! |---|---|---|
//! | `FAKECUDA_DEVICES` | the number of devices | 1 |
//! | `FAKECUDA_CAPACITY` | the bytes of each device | 80 GiB |
//! | `FAKECUDA_NAME` | the name of each device | Vramscope fake device |
//! | `FAKECUDA_COMPUTE` | the compute capability of each device, as 8.9 | 9.0 |
//! | `FAKECUDA_PROCESSORS` | the multiprocessors of each device | 132 |
//! | `FAKECUDA_CONTEXT_BYTES` | the bytes of a context | 0 |
//! | `FAKECUDA_OTHER_BYTES` | the bytes that another process uses | 0 |
//! | `FAKECUDA_VERSION` | the driver's CUDA version | 12040 |
//! | `FAKECUDA_MANAGED` | 0: the devices cannot prefetch unified memory | 1 |
//! | `FAKECUDA_DESCENDING` | 1: high addresses are allocated before low ones | 0 |
//! | `FAKECUDA_REUSE` | 0: no address is allocated twice | 1 |
//! | `FAKECUDA_LARGEST_WRITE` | copies to a device and fills of more bytes have no effect | no limit |
//! | `FAKECUDA_CUDNN` | the version of cuDNN, as 91900 | 90100 |
//! | `FAKECUDA_FAIL` | calls that fail: `symbol:after:times:code`, separated by commas | none |

use crate::faults::Fault;

/// The settings from the environment.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) devices: u64,
    pub(crate) capacity: u64,
    pub(crate) name: String,
    /// The compute capability: major and minor.
    pub(crate) compute: (i32, i32),
    pub(crate) processors: i32,
    pub(crate) context_bytes: u64,
    pub(crate) other_bytes: u64,
    pub(crate) version: i32,
    pub(crate) can_manage: bool,
    pub(crate) is_descending: bool,
    pub(crate) reuses_addresses: bool,
    pub(crate) largest_write: u64,
    pub(crate) cudnn_version: usize,
    pub(crate) faults: Vec<Fault>,
}

impl Settings {
    pub(crate) fn from_environment() -> Self {
        let faults = std::env::var("FAKECUDA_FAIL").unwrap_or_default();
        Self {
            // The address space is divided among at most eight devices.
            devices: number("FAKECUDA_DEVICES", 1).min(8),
            capacity: number("FAKECUDA_CAPACITY", 80 << 30),
            name: std::env::var("FAKECUDA_NAME").unwrap_or_else(|_| "Vramscope fake device".to_owned()),
            compute: std::env::var("FAKECUDA_COMPUTE").ok().and_then(|text| compute(&text)).unwrap_or((9, 0)),
            processors: number("FAKECUDA_PROCESSORS", 132).try_into().unwrap_or(132),
            context_bytes: number("FAKECUDA_CONTEXT_BYTES", 0),
            other_bytes: number("FAKECUDA_OTHER_BYTES", 0),
            version: number("FAKECUDA_VERSION", 12040).try_into().unwrap_or(0),
            can_manage: number("FAKECUDA_MANAGED", 1) != 0,
            is_descending: number("FAKECUDA_DESCENDING", 0) != 0,
            reuses_addresses: number("FAKECUDA_REUSE", 1) != 0,
            largest_write: number("FAKECUDA_LARGEST_WRITE", u64::MAX),
            cudnn_version: number("FAKECUDA_CUDNN", 90_100) as usize,
            faults: faults.split(',').filter_map(Fault::parse).collect(),
        }
    }
}

/// Reads a compute capability.
fn compute(text: &str) -> Option<(i32, i32)> {
    let (major, minor) = text.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn number(variable: &str, without: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(without)
}
