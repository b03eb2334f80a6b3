//! The name of this machine.

use std::fs;

/// Returns the name of this machine; empty if the system does not tell.
pub(crate) fn host_name() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = name.or_else(|| ["HOSTNAME", "COMPUTERNAME"].iter().find_map(|name| std::env::var(name).ok()));
    name.map(|name| name.trim().to_owned()).unwrap_or_default()
}
