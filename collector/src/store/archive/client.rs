//! The client of an object store, by its address.

use std::sync::Arc;

use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreScheme, RetryConfig};
use shared::limits::ObjectLimits;
use url::Url;

/// Creates the client of a vendor: its own builder, with what the variables say.
macro_rules! client {
    ($builder:ty, $url:expr, $variables:expr, $retry:expr) => {{
        let builder = <$builder>::new().with_url($url.as_str()).with_retry($retry);
        let builder = $variables.fold(builder, |builder, (name, value)| match name.to_ascii_lowercase().parse() {
            Ok(key) => builder.with_config(key, value),
            // Most variables of the environment are for other programs.
            Err(_) => builder,
        });
        Arc::new(builder.build()?)
    }};
}

/// Returns the client of an object store, such as `s3://bucket/prefix`, and the prefix. `variables` are those that the vendors'
/// own tools read, with credentials and endpoints. Nothing is asked yet.
///
/// What fails is repeated by the client only as long as a request may take: by default it would repeat it for three minutes,
/// in which nothing else is uploaded.
pub(super) fn client(
    url: &Url,
    variables: impl Iterator<Item = (String, String)>,
    limits: &ObjectLimits,
) -> Result<(Arc<dyn ObjectStore>, Path), Error> {
    let (scheme, path) = ObjectStoreScheme::parse(url)?;
    let retry = RetryConfig { max_retries: limits.retries, retry_timeout: limits.request, ..RetryConfig::default() };
    let store: Arc<dyn ObjectStore> = match scheme {
        ObjectStoreScheme::AmazonS3 => client!(AmazonS3Builder, url, variables, retry),
        ObjectStoreScheme::GoogleCloudStorage => client!(GoogleCloudStorageBuilder, url, variables, retry),
        ObjectStoreScheme::MicrosoftAzure => client!(MicrosoftAzureBuilder, url, variables, retry),
        _ => {
            let source = "its address must begin with s3://, gs:// or az://".into();
            return Err(Error::Generic { store: "address", source });
        }
    };
    Ok((store, Path::parse(path)?))
}
