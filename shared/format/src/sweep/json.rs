//! Reads JSON into a tree: as much of it as a sweep's document needs. Its size is bounded by the document's, its depth here.
//!
//! Written by hand, because it goes into the page's engine: decoders that are derived take six times as much there.

/// The deepest nesting. A document has three.
const DEPTH: u32 = 32;

/// A value.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Json {
    Null,
    Bool(bool),
    /// A whole number of 64 bits.
    Whole(u64),
    /// Any other number.
    Number,
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    /// Returns the first field with a name.
    pub(super) fn field(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Object(fields) => fields.iter().find(|(known, _)| known == name).map(|(_, value)| value),
            _ => None,
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn whole(&self) -> Option<u64> {
        match self {
            Self::Whole(number) => Some(*number),
            _ => None,
        }
    }
}

/// Where a text is no JSON, and why.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fault {
    /// The offset in bytes.
    pub(super) byte: usize,
    pub(super) what: &'static str,
}

/// Reads a text that is one value.
pub(super) fn parse(text: &str) -> Result<Json, Fault> {
    let mut parser = Parser { text, rest: text };
    let value = parser.value(DEPTH)?;
    match parser.peek() {
        None => Ok(value),
        Some(_) => Err(parser.not_json()),
    }
}

struct Parser<'a> {
    text: &'a str,
    rest: &'a str,
}

impl Parser<'_> {
    /// Returns the next character after white space.
    fn peek(&mut self) -> Option<u8> {
        self.rest = self.rest.trim_start_matches([' ', '\n', '\r', '\t']);
        self.rest.bytes().next()
    }

    fn fault(&self, what: &'static str) -> Fault {
        Fault { byte: self.text.len() - self.rest.len(), what }
    }

    fn not_json(&self) -> Fault {
        self.fault(if self.rest.is_empty() { "it ends early" } else { "the text is not JSON" })
    }

    /// Passes over a character of ASCII, if it is the next one after white space.
    fn takes(&mut self, wanted: u8) -> bool {
        let is_next = self.peek() == Some(wanted);
        if is_next {
            self.rest = self.rest.get(1..).unwrap_or_default();
        }
        is_next
    }

    fn expect(&mut self, wanted: u8) -> Result<(), Fault> {
        if self.takes(wanted) { Ok(()) } else { Err(self.not_json()) }
    }

    fn value(&mut self, depth: u32) -> Result<Json, Fault> {
        let Some(depth) = depth.checked_sub(1) else { return Err(self.fault("it is nested too deeply")) };
        match self.peek() {
            Some(b'{') => {
                self.expect(b'{')?;
                let mut fields = Vec::new();
                while !self.takes(b'}') {
                    if !fields.is_empty() {
                        self.expect(b',')?;
                    }
                    if self.peek() != Some(b'"') {
                        return Err(self.not_json());
                    }
                    let name = self.string()?;
                    self.expect(b':')?;
                    fields.push((name, self.value(depth)?));
                }
                Ok(Json::Object(fields))
            }
            Some(b'[') => {
                self.expect(b'[')?;
                let mut items = Vec::new();
                while !self.takes(b']') {
                    if !items.is_empty() {
                        self.expect(b',')?;
                    }
                    items.push(self.value(depth)?);
                }
                Ok(Json::List(items))
            }
            Some(b'"') => self.string().map(Json::Text),
            _ => self.word(),
        }
    }

    /// Reads a number or a name.
    fn word(&mut self) -> Result<Json, Fault> {
        let is_part = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (word, after) = self.rest.split_at_checked(end).unwrap_or_default();
        let value = match word {
            "null" => Json::Null,
            "true" => Json::Bool(true),
            "false" => Json::Bool(false),
            _ if after.is_empty() => {
                self.rest = after;
                return Err(self.not_json());
            }
            _ if !word.starts_with(|c: char| c == '-' || c.is_ascii_digit()) => return Err(self.not_json()),
            _ if word.bytes().all(|byte| byte.is_ascii_digit()) => word.parse().map_or(Json::Number, Json::Whole),
            _ if word.chars().all(|c| c.is_ascii_digit() || "+-.eE".contains(c)) => Json::Number,
            _ => return Err(self.not_json()),
        };
        self.rest = after;
        Ok(value)
    }

    /// Reads a string, whose opening quotation mark is next.
    fn string(&mut self) -> Result<String, Fault> {
        self.expect(b'"')?;
        let mut text = String::new();
        loop {
            let mut rest = self.rest.chars();
            let Some(c) = rest.next() else { return Err(self.not_json()) };
            if c != '\\' {
                if c != '"' && c.is_ascii_control() {
                    return Err(self.not_json());
                }
                self.rest = rest.as_str();
                if c == '"' {
                    return Ok(text);
                }
                text.push(c);
                continue;
            }
            let escape = rest.next();
            let plain = match escape {
                Some(c @ ('"' | '\\' | '/')) => c,
                Some('b') => '\u{8}',
                Some('f') => '\u{c}',
                Some('n') => '\n',
                Some('r') => '\r',
                Some('t') => '\t',
                // A surrogate is no character of its own; a sweep has no texts that need two.
                Some('u') => {
                    let after = rest.as_str();
                    let digits = after.get(..4).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
                    let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
                    let Some(code) = code else {
                        // What follows a cut is missing, and what follows a mistake is not.
                        self.rest = if after.len() < 4 { "" } else { after };
                        return Err(self.not_json());
                    };
                    rest = after.get(4..).unwrap_or_default().chars();
                    char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
                }
                Some(_) => return Err(self.not_json()),
                None => {
                    self.rest = "";
                    return Err(self.not_json());
                }
            };
            text.push(plain);
            self.rest = rest.as_str();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_each_kind() {
        let text = " {\"a\" : [1, -2, 1.5e3, 18446744073709551615, 18446744073709551616, true, null, {}, []],\n\
                    \"b\\u00e9\\n\\\"\": \"\\ud800é\", \"a\": false} ";
        let value = parse(text).unwrap();
        let Some(Json::List(items)) = value.field("a") else { panic!("{value:?}") };
        let wanted = [
            Json::Whole(1),
            Json::Number,
            Json::Number,
            Json::Whole(u64::MAX),
            Json::Number,
            Json::Bool(true),
            Json::Null,
            Json::Object(Vec::new()),
            Json::List(Vec::new()),
        ];
        assert_eq!(items[..], wanted);
        assert_eq!(value.field("bé\n\"").and_then(Json::text), Some("\u{fffd}é"));
        assert_eq!((value.field("c"), items[0].field("a"), items[1].whole()), (None, None, None));
    }

    #[test]
    fn what_is_no_json_is_refused_where_it_stops() {
        for (text, byte) in [
            ("[1 2]", 3),
            ("{1:2}", 1),
            ("[}", 1),
            ("{\"a\" 1}", 5),
            ("[nul]", 1),
            ("[\"\\x\"]", 2),
            ("[1,]", 3),
            ("{\"a\":1,}", 7),
            ("[1]x", 3),
            ("[\"a\nb\"]", 3),
            ("[1x2]", 1),
            ("[\"\\u00zz\"]", 4),
        ] {
            assert_eq!(parse(text), Err(Fault { byte, what: "the text is not JSON" }), "{text}");
        }
        for text in ["", "[", "{\"a", "{\"a\"", "{\"a\":", "[1", "[1,", "[nu", "\"a\\", "\"\\u00"] {
            assert_eq!(parse(text), Err(Fault { byte: text.len(), what: "it ends early" }), "{text}");
        }
        assert_eq!(parse(&"[".repeat(100)), Err(Fault { byte: 32, what: "it is nested too deeply" }));
    }
}
