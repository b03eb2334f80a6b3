//! `/healthz`: whether the server is up, for scripts that wait for it.

/// Always `ok`: a server that can answer is well.
pub(crate) async fn health() -> &'static str {
    "ok\n"
}
