//! The description of the API, generated from the routes.

use std::sync::LazyLock;

use utoipa::openapi::OpenApi as Document;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, OpenApi};

use super::routes;

/// The description as JSON. A test compares it with the router.
pub(super) static OPENAPI: LazyLock<String> =
    // Every key of the description is a string, so that it can always be written as JSON.
    LazyLock::new(|| Api::openapi().to_pretty_json().unwrap_or_default());

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Vramscope",
        version = "1",
        description = "The sessions of running jobs: how collectors send them, what is kept of them, and how they are \
                       watched. Fields that end in _us are microseconds since the epoch. Sizes are in bytes."
    ),
    paths(
        routes::docs::docs,
        routes::docs::openapi,
        routes::health::live,
        routes::health::ready,
        routes::ingest::ingest_socket,
        routes::ingest::ingest_post,
        routes::sessions::list,
        routes::sessions::one,
        routes::sessions::delete,
        routes::stats::stats,
        routes::trace::trace,
        routes::live::live,
        routes::ask::ask,
        routes::pin::pin,
        routes::demo::demo,
        routes::metrics::metrics,
    ),
    modifiers(&TokenScheme)
)]
struct Api;

/// Adds the way in which a client shows its token.
struct TokenScheme;

impl Modify for TokenScheme {
    fn modify(&self, document: &mut Document) {
        let scheme = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some("Required only if the server was started with a token."))
            .build();
        let components = document.components.get_or_insert_default();
        components.security_schemes.insert("token".to_owned(), SecurityScheme::Http(scheme).into());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn every_operation_is_described_with_its_responses() {
        let api: Value = serde_json::from_str(&OPENAPI).unwrap();
        let mut lines = Vec::new();
        for (path, methods) in api["paths"].as_object().unwrap() {
            for (method, operation) in methods.as_object().unwrap() {
                let summary = operation["summary"].as_str().unwrap();
                assert!(summary.ends_with('.'), "{method} {path}: {summary}");
                let parameters = operation["parameters"].as_array().into_iter().flatten();
                let parameters: Vec<_> = parameters.map(|parameter| parameter["name"].as_str().unwrap()).collect();
                let responses = operation["responses"].as_object().unwrap();
                let statuses: Vec<_> = responses.keys().map(String::as_str).collect();
                for (status, response) in responses {
                    assert!(!response["description"].as_str().unwrap().is_empty(), "{method} {path} {status}");
                }
                let lock = if operation["security"].is_array() { "token" } else { "-" };
                let line = format!("{method:6} {path:30} {lock:5} {:23} {}", parameters.join(" "), statuses.join(" "));
                lines.push(line);
            }
        }
        insta::assert_snapshot!(lines.join("\n"), @r"
        get    /api/v1/                       -                             200
        post   /api/v1/demo                   token                         200 201 401 403 503
        get    /api/v1/health/live            -                             200
        get    /api/v1/health/ready           -                             200 503
        get    /api/v1/ingest                 -                             101 401 403 426 503
        post   /api/v1/ingest                 -                             200 401 403 408 413 503
        get    /api/v1/openapi.json           -                             200
        get    /api/v1/sessions               token limit                   200 400 401
        delete /api/v1/sessions/{id}          token id                      204 401 403 404 409
        get    /api/v1/sessions/{id}          token id                      200 401 404
        post   /api/v1/sessions/{id}/ask      token id                      202 400 401 403 404 409
        get    /api/v1/sessions/{id}/live     -     id                      101 401 403 404 426 503
        get    /api/v1/sessions/{id}/stats    token id                      200 401 404
        get    /api/v1/sessions/{id}/trace    token id format from_us to_us 200 400 401 404 413 503
        get    /metrics                       token                         200 401
        ");
    }

    #[test]
    fn every_reference_leads_to_a_schema() {
        let api: Value = serde_json::from_str(&OPENAPI).unwrap();
        let names: Vec<_> = api["components"]["schemas"].as_object().unwrap().keys().map(String::as_str).collect();
        insta::assert_snapshot!(names.join(" "), @r"Device DeviceStats Error Question Session Sessions Stats Topic");
        for reference in OPENAPI.split("\"$ref\": \"").skip(1) {
            let name = reference.split('"').next().unwrap().trim_start_matches("#/components/schemas/");
            assert!(names.contains(&name), "{name}");
        }
    }
}
