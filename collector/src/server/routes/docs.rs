//! `/api/v1/`, `/api/v1/openapi.json`: what the API is, for people and for programs.

use std::fmt::Write;

use axum::http::header::CONTENT_TYPE;
use axum::response::{Html, IntoResponse, Response};
use serde_json::Value;

/// The description; a test holds it against the routes.
pub(crate) const OPENAPI: &str = include_str!("../openapi.json");

/// The description itself.
pub(crate) async fn openapi() -> Response {
    ([(CONTENT_TYPE, "application/json")], OPENAPI).into_response()
}

/// A page of it, without a script.
pub(crate) async fn docs() -> Html<String> {
    Html(page(&serde_json::from_str(OPENAPI).unwrap_or_default()))
}

fn page(api: &Value) -> String {
    let mut html =
        String::from("<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Vramscope API</title>");
    // Writing to a string can't fail.
    let _ = write!(
        html,
        "<h1>{}</h1><p>{}</p><p><a href=\"/api/v1/openapi.json\">openapi.json</a></p>",
        text(&api["info"]["title"]),
        text(&api["info"]["description"])
    );
    for (path, methods) in api["paths"].as_object().into_iter().flatten() {
        for (method, route) in methods.as_object().into_iter().flatten() {
            let _ = write!(
                html,
                "<h2><code>{} {}</code></h2><p>{}</p>",
                escaped(&method.to_uppercase()),
                escaped(path),
                text(&route["description"])
            );
            items(&mut html, &route["parameters"], "name");
            html.push_str("<ul>");
            for (status, answer) in route["responses"].as_object().into_iter().flatten() {
                let _ = write!(html, "<li>{}: {}</li>", escaped(status), text(&answer["description"]));
            }
            html.push_str("</ul>");
        }
    }
    html.push_str("</html>\n");
    html
}

fn items(html: &mut String, list: &Value, name: &str) {
    let Some(list) = list.as_array().filter(|list| !list.is_empty()) else { return };
    html.push_str("<dl>");
    for item in list {
        let _ = write!(html, "<dt><code>{}</code></dt><dd>{}</dd>", text(&item[name]), text(&item["description"]));
    }
    html.push_str("</dl>");
}

fn text(value: &Value) -> String {
    escaped(value.as_str().unwrap_or_default())
}

/// Text that is text wherever it stands in HTML.
fn escaped(text: &str) -> String {
    text.chars().fold(String::with_capacity(text.len()), |mut html, c| {
        match c {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            c => html.push(c),
        }
        html
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text() {
        assert_eq!(escaped("<a href='x'>\"&"), "&lt;a href=&#39;x&#39;&gt;&quot;&amp;");
    }

    #[test]
    fn the_page_names_every_route() {
        let api: Value = serde_json::from_str(OPENAPI).unwrap();
        let html = page(&api);
        for path in api["paths"].as_object().unwrap().keys() {
            assert!(html.contains(&escaped(path)), "{path}");
        }
    }
}
