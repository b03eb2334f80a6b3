//! The audit log: who did what, from where.
//!
//! Each line is an event with the target `audit`. `who` is the name of the token (empty if none was shown), `peer` the
//! address, `session` the session's id. Lines hold no secret, and no text of a client's but ids that were checked.

use std::net::IpAddr;

use axum::http::Method;
use wire::is_session;

use super::{Caller, Denied};

/// The target of the events, as filters name it.
pub const TARGET: &str = "audit";

/// Notes that a collector began a session.
pub fn session_begun(caller: &Caller, session: &str) {
    tracing::info!(target: TARGET, who = caller.name(), peer = %caller.peer, session = id(session), "session begun");
}

/// Notes that a collector continues a session.
pub fn session_resumed(caller: &Caller, session: &str) {
    tracing::info!(target: TARGET, who = caller.name(), peer = %caller.peer, session = id(session), "session resumed");
}

/// Notes that a collector ended its session.
pub fn session_ended(caller: &Caller, session: &str) {
    tracing::info!(target: TARGET, who = caller.name(), peer = %caller.peer, session = id(session), "session ended");
}

/// Notes that a client deleted a session.
pub fn session_deleted(caller: &Caller, session: &str) {
    tracing::info!(target: TARGET, who = caller.name(), peer = %caller.peer, session = id(session), "session deleted");
}

/// Notes that the server will delete a session because it was kept for so many days.
pub fn session_announced(session: &str, days: i64) {
    tracing::info!(target: TARGET, session = id(session), days, "session will be deleted for its age");
}

/// Notes that the server deleted a session of a producer; `reason` names the limit that was exceeded.
pub fn session_evicted(producer: &str, session: &str, (seq, bytes): (u64, u64), reason: &'static str) {
    tracing::info!(target: TARGET, producer, session = id(session), seq, bytes, reason, "session evicted");
}

/// Notes that the server deleted the beginning of a session of a producer, up to the batch before `first`; `reason` names the
/// limit that was exceeded.
pub fn session_truncated(producer: &str, session: &str, (first, bytes): (u64, u64), reason: &'static str) {
    tracing::info!(target: TARGET, producer, session = id(session), first, bytes, reason, "session truncated");
}

/// Notes that bytes of a stored segment are damaged; `outcome` says whether its file was kept, replaced or set aside.
pub fn segment_damaged(session: &str, (number, bytes): (u32, u64), outcome: &'static str) {
    tracing::error!(target: TARGET, session = id(session), number, bytes, outcome, "segment damaged");
}

/// Notes that part of a session was stored and is not there any more; `damaged_bytes` is all that it lost so far.
pub fn segments_missing(session: &str, damaged_bytes: u64) {
    tracing::error!(target: TARGET, session = id(session), damaged_bytes, "part of a session is missing");
}

/// Notes that the server removed an incomplete batch, as a crash leaves it, from the end of a segment.
pub fn tail_removed(session: &str, (number, bytes): (u32, u64)) {
    tracing::warn!(target: TARGET, session = id(session), number, bytes, "incomplete batch removed after a stop");
}

/// Notes that a client kept a baseline. Its name was checked.
pub fn baseline_kept(caller: &Caller, baseline: &str) {
    tracing::info!(target: TARGET, who = caller.name(), peer = %caller.peer, baseline, "baseline kept");
}

/// Notes that a client deleted a baseline.
pub fn baseline_deleted(caller: &Caller, baseline: &str) {
    tracing::info!(target: TARGET, who = caller.name(), peer = %caller.peer, baseline, "baseline deleted");
}

/// Notes that a client pinned a session, so that the server keeps it, or unpinned it.
pub fn session_pinned(caller: &Caller, session: &str, is_pinned: bool) {
    let (who, peer) = (caller.name(), caller.peer);
    tracing::info!(target: TARGET, who, %peer, session = id(session), is_pinned, "session pinned or unpinned");
}

/// Notes that a client made a link. A link is named by the first digits of the hash of its token, which open nothing.
pub fn link_made(caller: &Caller, link: &str, bytes: u64) {
    tracing::info!(target: TARGET, who = caller.name(), peer = %caller.peer, link = digits(link), bytes, "link made");
}

/// Notes that a client changed when a link expires.
pub fn link_extended(caller: &Caller, link: &str) {
    tracing::info!(target: TARGET, who = caller.name(), peer = %caller.peer, link = digits(link), "link's expiry changed");
}

/// Notes that a client deleted a link.
pub fn link_deleted(caller: &Caller, link: &str) {
    tracing::info!(target: TARGET, who = caller.name(), peer = %caller.peer, link = digits(link), "link deleted");
}

/// Notes that a client gave a wrong password for a link.
pub fn link_locked(peer: IpAddr, link: &str) {
    tracing::warn!(target: TARGET, %peer, link = digits(link), "wrong password for a link");
}

/// Notes that a link of an owner expired and was deleted.
pub fn link_expired(link: &str, owner: &str) {
    tracing::info!(target: TARGET, link = digits(link), owner, "link expired");
}

/// Notes that an upload of an owner was deleted, because nothing more arrived of it.
pub fn upload_given_up(owner: &str, bytes: u64) {
    tracing::info!(target: TARGET, owner, bytes, "upload given up");
}

/// Notes that a collector or a viewer was refused. `outcome` is the word for the reason.
pub fn refused(caller: &Caller, session: &str, outcome: &'static str) {
    tracing::warn!(target: TARGET, who = caller.name(), peer = %caller.peer, session = id(session), outcome, "refused");
}

/// Notes that a request or a connection was denied. A wrong token is a failed login.
pub fn denied(caller: &Caller, session: &str, denied: &Denied) {
    if denied.is_failed_login() {
        login_failed(caller.peer, denied);
    } else {
        refused(caller, session, denied.outcome());
    }
}

/// Notes that a request to a route was denied.
pub fn request_denied(caller: &Caller, (method, route): (&Method, &str), denied: &Denied) {
    if denied.is_failed_login() {
        return login_failed(caller.peer, denied);
    }
    let (who, peer, outcome) = (caller.name(), caller.peer, denied.outcome());
    tracing::warn!(target: TARGET, who, %peer, %method, route, outcome, "refused");
}

fn login_failed(peer: IpAddr, denied: &Denied) {
    tracing::warn!(target: TARGET, %peer, outcome = denied.outcome(), "login failed");
}

/// Returns a session's id, or nothing if it is not one: a client may send any text.
fn id(session: &str) -> &str {
    if is_session(session) { session } else { "" }
}

/// Returns the first digits of a hash.
fn digits(hash: &str) -> &str {
    hash.get(..12).unwrap_or_default()
}
