//! The addresses of links.

use wire::is_link_token;

/// The address of a link, as people pass it on: `https://HOST[:PORT][/PATH]/s-TOKEN[#VIEW]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkAddress {
    /// The address of the server.
    pub server: String,
    /// The link's token.
    pub token: String,
}

impl LinkAddress {
    /// Reads an address. The error is a sentence for people, which does not repeat it: it may hold the token.
    pub fn parse(text: &str) -> Result<Self, String> {
        let invalid = || {
            "This is not a link to a shared trace. It looks like https://HOST/s-TOKEN, where TOKEN has 39 characters."
                .to_owned()
        };
        let text = text.trim();
        let text = text.split(['#', '?']).next().unwrap_or_default().trim_end_matches('/');
        let (server, last) = text.rsplit_once('/').ok_or_else(invalid)?;
        let token = last.strip_prefix("s-").filter(|token| is_link_token(token)).ok_or_else(invalid)?;
        if !server.starts_with("http://") && !server.starts_with("https://") {
            return Err(invalid());
        }
        Ok(Self { server: server.to_owned(), token: token.to_owned() })
    }

    /// Whether the address names the machine that it is used on.
    pub fn is_local(&self) -> bool {
        is_local(&self.server)
    }
}

/// Whether the address of a server names the machine that it is used on.
pub(super) fn is_local(server: &str) -> bool {
    let (_, host) = server.split_once("://").unwrap_or_default();
    let host = host.split('/').next().unwrap_or_default();
    let name = host.strip_prefix('[').map_or_else(|| host.split(':').next(), |rest| rest.split(']').next());
    let name = name.unwrap_or_default();
    name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_this_machine_are_told_apart() {
        for (server, want) in [
            ("http://127.0.0.1:7070", true),
            ("http://localhost", true),
            ("http://[::1]:7070/tools", true),
            ("https://box.example:7070", false),
            ("https://127.0.0.1.example", false),
            ("http://10.0.0.1:7070", false),
        ] {
            let link = LinkAddress { server: server.to_owned(), token: String::new() };
            assert_eq!(link.is_local(), want, "{server}");
        }
    }

    #[test]
    fn links_are_read_with_or_without_their_view() {
        let token = "abcdefghijklmnopqrstuvwxyz2345672345672";
        for (rest, server) in [
            (format!("https://box.example/s-{token}"), "https://box.example"),
            (format!(" http://127.0.0.1:7070/tools/s-{token}#v=1&cur=7\n"), "http://127.0.0.1:7070/tools"),
            (format!("https://box.example/s-{token}/"), "https://box.example"),
        ] {
            let want = LinkAddress { server: server.to_owned(), token: token.to_owned() };
            assert_eq!(LinkAddress::parse(&rest), Ok(want));
        }
        for text in [
            String::new(),
            format!("s-{token}"),
            format!("ftp://box/s-{token}"),
            "https://box/s-short".to_owned(),
            format!("https://box/{token}"),
            "https://box/#session=abcdefghijklmnopqrstuvwxyz".to_owned(),
        ] {
            let error = LinkAddress::parse(&text).unwrap_err();
            assert!(!error.contains(token), "{text}");
        }
    }
}
