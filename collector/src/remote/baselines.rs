//! The baselines on a server.

use reqwest::Method;
use reqwest::header::{ETAG, IF_MATCH, IF_NONE_MATCH};

use super::Remote;
use crate::baseline::{BASELINE_NAME, is_baseline_name};

impl Remote {
    /// Returns a baseline, and what identifies this version of it. `None` if there is none of this name.
    pub async fn baseline(&self, name: &str) -> Result<Option<(Vec<u8>, String)>, String> {
        let sent = self.request(Method::GET, &format!("baselines/{}", checked(name)?)).send(&self.client).await;
        if sent.as_ref().is_err_and(|failure| failure.has_code("baseline")) {
            return Ok(None);
        }
        let response = sent.map_err(|failure| self.sentence(failure))?;
        let version = response.headers().get(ETAG).and_then(|version| version.to_str().ok()).map(str::to_owned);
        let version = version
            .ok_or_else(|| format!("{} does not answer like a Vramscope server. Check the address.", self.address))?;
        let bytes = response.bytes().await.map_err(|error| self.sentence(error.into()))?;
        Ok(Some((bytes.to_vec(), version)))
    }

    /// Keeps a baseline in place of a version of it, or as a new one. Returns false if somebody changed it meanwhile.
    pub async fn keep_baseline(&self, name: &str, baseline: Vec<u8>, version: Option<&str>) -> Result<bool, String> {
        let put = self.request(Method::PUT, &format!("baselines/{}", checked(name)?)).json(baseline);
        let put = match version {
            Some(version) => put.header(IF_MATCH, version.to_owned()),
            None => put.header(IF_NONE_MATCH, "*".to_owned()),
        };
        match put.send(&self.client).await {
            Ok(_) => Ok(true),
            Err(failure) if failure.has_code("changed") => Ok(false),
            Err(failure) => Err(self.sentence(failure)),
        }
    }
}

/// Returns a name that can stand in an address.
fn checked(name: &str) -> Result<&str, String> {
    is_baseline_name(name).then_some(name).ok_or_else(|| BASELINE_NAME.to_owned())
}
