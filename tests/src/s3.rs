//! An S3 server on loopback that keeps its objects in a folder.

use std::fs;
use std::net::TcpListener;
use std::path::Path;

use anyhow::{Result, anyhow};
use hyper::server::conn::http1::Builder;
use hyper_util::rt::TokioIo;
use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;

/// The server's only bucket.
pub const BUCKET: &str = "traces";

/// Serves S3 from a folder until the process ends. Returns the variables that a client needs.
pub fn serve(root: &Path) -> Result<Vec<(String, String)>> {
    fs::create_dir_all(root.join(BUCKET))?;
    let files = s3s_fs::FileSystem::new(root).map_err(|error| anyhow!("{error:?}"))?;
    let mut builder = S3ServiceBuilder::new(files);
    builder.set_auth(SimpleAuth::from_single("key", "secret"));
    let service = builder.build();
    let listener = TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    std::thread::spawn(move || {
        runtime.block_on(async {
            let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(Builder::new().serve_connection(TokioIo::new(socket), service.clone()));
            }
        });
    });
    let variables = [
        ("AWS_ACCESS_KEY_ID", "key".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "secret".to_owned()),
        ("AWS_REGION", "us-east-1".to_owned()),
        ("AWS_ENDPOINT", format!("http://{address}")),
        ("AWS_ALLOW_HTTP", "true".to_owned()),
    ];
    Ok(variables.map(|(name, value)| (name.to_owned(), value)).to_vec())
}
