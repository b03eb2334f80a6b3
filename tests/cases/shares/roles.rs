//! Who may share, open, change and delete, and what the server keeps to itself.

use anyhow::Result;
use serde_json::json;
use tests::server::Server;
use tests::{Folder, http};

use super::{Client, code, read, recording, text};

const ROLES: [&str; 5] = ["ingest", "read", "share", "admin", ""];

fn token(role: &str) -> String {
    if role.is_empty() { String::new() } else { format!("token-with-the-role-{role}") }
}

fn tokens() -> String {
    ROLES[..4].iter().map(|role| format!("{role} {role} {}\n", token(role))).collect()
}

#[test]
fn each_role_may_do_what_it_is_for() -> Result<()> {
    let folder = Folder::new("roles")?;
    let file = folder.secret("tokens", &tokens())?;
    let server = Server::start_with(&["--tokens", &file, "--public-links"])?;
    let client = Client::new(server.address());
    let (share, recording) = (token("share"), recording());
    let sharer = client.with(&share);
    let private = sharer.share(&recording, &json!({}))?;
    let public = sharer.share(&recording, &json!({ "is_public": true }))?;
    // What the roles ingest, read, share, admin and none get.
    let trace = |(token, _): &(String, String)| format!("/{token}/trace");
    let (link, open) = (format!("/{}", private.0), format!("/{}", public.0));
    for (method, path, want) in [
        ("GET", "/sharing".to_owned(), [403, 403, 200, 200, 401]),
        ("GET", link.clone(), [403, 200, 403, 200, 401]),
        ("GET", trace(&private), [403, 200, 403, 200, 401]),
        ("GET", open.clone(), [200, 200, 200, 200, 200]),
        ("GET", trace(&public), [200, 200, 200, 200, 200]),
        // Who may not read learns nothing, not even whether there is such a link.
        ("GET", format!("/{}", "a".repeat(39)), [403, 404, 403, 404, 401]),
        ("DELETE", link.clone(), [403, 403, 403, 204, 401]),
        ("GET", link, [403, 410, 403, 410, 401]),
    ] {
        let tokens = ROLES.map(token);
        let got: Vec<u16> = tokens
            .iter()
            .map(|token| client.with(token).send(method, &path, &[], b"").map(|response| response.status))
            .collect::<Result<_>>()?;
        assert_eq!(got, want, "{method} {path}");
    }
    for (role, want) in ROLES.iter().zip([403, 403, 201, 201, 401]) {
        let status = client.with(&token(role)).json("POST", "/uploads", &json!({ "bytes": 9 }))?.status;
        assert_eq!(status, want, "{role}");
    }
    // The delete token is enough, and only that of the link.
    let delete = |delete_token: &str| {
        client.send("DELETE", &open, &[("x-vramscope-delete-token", delete_token)], b"").map(|response| response.status)
    };
    assert_eq!((delete(&private.1)?, delete(&public.0)?, delete(&public.1)?), (403, 403, 204));
    assert_eq!(client.get(&open)?.status, 401, "it is not public any more, and so tells nothing");
    assert_eq!(code(&client.with(&token("read")).get(&open)?), "gone");
    Ok(())
}

#[test]
fn without_leave_of_the_owner_no_link_is_public_or_lasts_longer() -> Result<()> {
    let server = Server::start_with(&["--share-days", "7", "--share-bytes", "1MiB"])?;
    let client = Client::new(server.address());
    let sharing = read(&client.get("/sharing")?, 200)?;
    assert_eq!(
        (sharing["is_public_allowed"].as_bool(), sharing["most_expires_seconds"].as_u64()),
        (Some(false), Some(604_800))
    );
    assert_eq!(sharing["default_expires_seconds"].as_u64(), Some(604_800));
    for (more, want) in [
        (json!({ "is_public": true }), "public"),
        (json!({ "expires_seconds": 604_801 }), "expiry"),
        (json!({ "expires_seconds": null }), "expiry"),
        (json!({ "bytes": 2_000_000 }), "too_large"),
        (json!({ "bytes": 2_000_000_000_000_u64 }), "too_large"),
        (json!({ "bytes": 0 }), "malformed"),
        (json!({ "bytes": -1 }), "malformed"),
        (json!({ "hash": "../../etc" }), "malformed"),
    ] {
        let mut body = json!({ "bytes": 9 });
        more.as_object().into_iter().flatten().for_each(|(key, value)| body[key] = value.clone());
        assert_eq!(code(&client.json("POST", "/uploads", &body)?), want, "{more}");
    }
    let recording = recording();
    let (token, delete) = client.share(&recording, &json!({ "expires_seconds": 60 }))?;
    let header = [("x-vramscope-delete-token", delete.as_str()), ("Content-Type", "application/json")];
    let put = |seconds: u64| {
        client.send(
            "PUT",
            &format!("/{token}/expiry"),
            &header,
            json!({ "expires_seconds": seconds }).to_string().as_bytes(),
        )
    };
    assert_eq!(code(&put(604_801)?), "expiry");
    let link = read(&put(600)?, 200)?;
    let lasts = link["expires_us"].as_i64().unwrap_or(0) - link["created_us"].as_i64().unwrap_or(0);
    assert!((600_000_000..660_000_000).contains(&lasts), "{lasts}");
    // It expires.
    read(&put(1)?, 200)?;
    let begun = std::time::Instant::now();
    while client.get(&format!("/{token}"))?.status == 200 {
        assert!(begun.elapsed().as_secs() < 10, "it does not expire");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let gone = client.get(&format!("/{token}/trace"))?;
    assert!(gone.status == 410 && gone.text().contains("expired"), "{}", gone.text());
    Ok(())
}

#[test]
fn a_password_is_needed_and_guesses_are_slow() -> Result<()> {
    let server = Server::start()?;
    let client = Client::new(server.address());
    let (token, _) = client.share(&recording(), &json!({ "password": "correct horse" }))?;
    for path in [format!("/{token}"), format!("/{token}/trace")] {
        let refused = client.get(&path)?;
        assert_eq!((refused.status, &*code(&refused)), (401, "password"), "{path}");
    }
    let open = |password: &str| client.json("POST", &format!("/{token}/open"), &json!({ "password": password }));
    let key = read(&open("correct horse")?, 200)?;
    let link = client.send("GET", &format!("/{token}"), &[("x-vramscope-key", text(&key, "key"))], b"")?;
    assert_eq!(read(&link, 200)?["has_password"].as_bool(), Some(true));
    let statuses: Vec<u16> = (0..6).map(|n| open(&n.to_string()).map(|answer| answer.status)).collect::<Result<_>>()?;
    assert_eq!(statuses, [401, 401, 401, 401, 429, 429]);
    Ok(())
}

#[test]
fn no_secret_gets_into_the_log_or_the_folder() -> Result<()> {
    let folder = Folder::new("secrets")?;
    let server = Server::start_logging(&folder, &[], &[("VRAMSCOPE_LOG", "debug")])?;
    let address = server.address();
    let client = Client::new(address);
    let (token, delete) = client.share(&recording(), &json!({ "password": "correct-horse-battery" }))?;
    let key =
        read(&client.json("POST", &format!("/{token}/open"), &json!({ "password": "correct-horse-battery" }))?, 200)?;
    let key = text(&key, "key").to_owned();
    client.send("GET", &format!("/{token}/trace"), &[("x-vramscope-key", &key)], b"")?;
    for path in [format!("/s-{token}"), format!("/s-{token}/x"), format!("/x/s-{token}?a=b")] {
        http::get(address, &path, &[])?;
    }
    client.json("POST", &format!("/{token}/open"), &json!({ "password": "battery-staple-wrong" }))?;
    client.send("DELETE", &format!("/{token}"), &[("x-vramscope-delete-token", &delete)], b"")?;
    let mut kept = server.log(&folder)?;
    assert!(kept.contains("link made") && kept.contains("wrong password for a link") && kept.contains("link deleted"));
    for entry in walk(&folder)? {
        kept += &entry;
    }
    for secret in [&*token, &delete, &key, "correct-horse-battery", "battery-staple-wrong"] {
        assert!(!kept.contains(secret), "{secret} is in the log or in a file");
    }
    Ok(())
}

/// Returns the paths and contents of all files in a folder.
fn walk(folder: &std::path::Path) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        all.push(path.display().to_string());
        if path.is_dir() {
            all.extend(walk(&path)?);
        } else {
            all.push(String::from_utf8_lossy(&std::fs::read(&path)?).into_owned());
        }
    }
    Ok(all)
}
