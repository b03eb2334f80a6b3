//! What a recording's header says in a summary.

use format::Header;
use query::{Origin, Summary};

/// Adds the origin of a recording, and its devices' models and capacities.
pub(crate) fn tell_origin(summary: &mut Summary, header: Header) {
    for device in &mut summary.devices {
        if let Some(known) = header.devices.iter().find(|known| known.number == device.device) {
            device.model.clone_from(&known.name);
            device.capacity = known.capacity;
        }
    }
    if summary.settings.is_empty() && !header.settings.conf.is_empty() {
        summary.settings.push(("PYTORCH_CUDA_ALLOC_CONF".to_owned(), header.settings.conf));
    }
    let job = match header.rank {
        Some(rank) if header.job.is_empty() => ["rank ", &rank.to_string()].concat(),
        Some(rank) => [&header.job, ", rank ", &rank.to_string()].concat(),
        None => header.job,
    };
    let Header { program, name, host, torch, allocator, clock, started_us, .. } = header;
    let allocator = match (torch.as_str(), allocator.as_str()) {
        ("", _) => allocator,
        (torch, "") => format!("PyTorch {torch} rules"),
        (torch, whose) => [whose, " (torch ", torch, ")"].concat(),
    };
    summary.origin = Some(Origin { program, name, host, job, allocator, clock, started_us });
}
