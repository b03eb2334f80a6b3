//! What other sites may do with the page: be fetched from, frame it, open it. And the page as one file.

use anyhow::Result;
use tests::program;
use tests::server::Server;

use super::check_headers;

/// Returns the directive of a policy with a name.
fn directive<'a>(policy: &'a str, name: &str) -> &'a str {
    policy.split(';').map(str::trim).find(|part| part.starts_with(name)).unwrap_or_default()
}

#[test]
fn the_page_connects_to_the_server_that_its_address_names_and_to_no_other() -> Result<()> {
    let server = Server::start()?;
    for (path, allowed) in [
        ("/?url=https://example.org:8443/a.pickle", "connect-src 'self' https://example.org:8443"),
        ("/worker.js?url=https%3A%2F%2Fexample.org%2Fa", "connect-src 'self' https://example.org"),
        ("/", "connect-src 'self'"),
        ("/?url=javascript:alert(1)", "connect-src 'self'"),
        ("/?url=https://user:secret@example.org/", "connect-src 'self'"),
        ("/?url=https://*/", "connect-src 'self'"),
        ("/?url=https://a%3bscript-src%20*/", "connect-src 'self'"),
        // The API is for the page itself.
        ("/api/v1/sessions?url=https://example.org/", "connect-src 'self'"),
    ] {
        let response = server.get(path)?;
        let policy = response.header("content-security-policy");
        assert_eq!(directive(policy, "connect-src"), allowed, "{path}");
        // Nothing else changes.
        let rest = policy.replace(allowed, "connect-src 'self'");
        assert_eq!(rest, server.get("/healthz")?.header("content-security-policy"), "{path}");
        for name in ["cross-origin-opener-policy", "cross-origin-resource-policy"] {
            assert_eq!(response.header(name), "same-origin", "{path}: {name}");
        }
    }
    Ok(())
}

#[test]
fn only_sites_that_the_owner_names_frame_the_page() -> Result<()> {
    let sites = ["--embed-origin", "https://ci.example.org", "--embed-origin", "http://localhost:8888/"];
    let (alone, open) = (Server::start()?, Server::start_with(&sites)?);
    for (server, path, ancestors) in [
        (&alone, "/?embed", Some("frame-ancestors 'none'")),
        (&open, "/?embed", Some("frame-ancestors https://ci.example.org http://localhost:8888")),
        (
            &open,
            "/?embed=1&url=https://a.example/",
            Some("frame-ancestors https://ci.example.org http://localhost:8888"),
        ),
        (&open, "/", None),
        (&open, "/?embedded", None),
        (&open, "/api/v1/sessions?embed", None),
        (&open, "/sample.pickle?embed", None),
        (&open, "/healthz?embed", None),
    ] {
        let response = server.get(path)?;
        let Some(ancestors) = ancestors else {
            check_headers(path, &response);
            continue;
        };
        assert_eq!(directive(response.header("content-security-policy"), "frame-ancestors"), ancestors, "{path}");
        assert_eq!(response.header("cross-origin-opener-policy"), "unsafe-none", "{path}");
        assert_eq!(response.header("cross-origin-resource-policy"), "cross-origin", "{path}");
        assert_eq!(response.header("cross-origin-embedder-policy"), "require-corp", "{path}");
    }
    Ok(())
}

#[test]
fn a_site_that_is_no_origin_starts_no_server() -> Result<()> {
    for site in ["*", "ci.example.org", "https://*.example.org", "https://ci.example.org/path", "https://a;b"] {
        let output = program::run(&["serve", "--listen", "127.0.0.1:0", "--embed-origin", site])?;
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{site}: {error}");
        assert!(error.contains("write a scheme and a host, such as https://ci.example.org"), "{site}: {error}");
    }
    Ok(())
}

#[test]
fn the_page_as_one_file_is_to_be_saved_and_has_a_policy_of_its_own() -> Result<()> {
    let server = Server::start()?;
    let response = server.get("/offline.html")?;
    if response.status == 503 {
        assert!(response.text().contains("has no page"), "{}", response.text());
        return Ok(());
    }
    assert_eq!((response.status, response.header("content-type")), (200, "text/html; charset=utf-8"));
    assert_eq!(response.header("content-disposition"), "attachment; filename=\"vramscope.html\"");
    let page = response.text();
    assert_eq!(page.matches("<!--vramscope-trace-->").count(), 1);
    let policy = page.split("http-equiv=\"Content-Security-Policy\" content=\"").nth(1).unwrap_or_default();
    let policy = policy.split('"').next().unwrap_or_default();
    assert!(policy.starts_with("default-src 'none'; script-src 'sha256-"), "{policy}");
    assert!(policy.contains("connect-src 'none'") && !policy.contains("unsafe-inline"), "{policy}");
    assert!(!policy.contains("'self'") && !policy.contains("http"), "{policy}");
    Ok(())
}
