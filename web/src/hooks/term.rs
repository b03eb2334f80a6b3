//! Whether what is typed can be searched for.

use std::rc::Rc;

use query::term::Term;
use query::{Answer, Query, SearchQuery};
use yew::Callback;

use super::{ModelHandle, ask};

/// Replies whether a text is a search term, or with a sentence why it is none. Regular expressions are read by the worker, so that
/// the reply comes later, or never if the file is closed first.
pub fn check_term(model: &ModelHandle, text: &str, reply: &Callback<Result<(), String>>) {
    match Term::parse(text) {
        Ok(term) if term.has_regex() => {
            let reply = reply.reform(|answer: Rc<Answer>| match &*answer {
                Answer::Search(result) => result.error.clone().map_or(Ok(()), Err),
                _ => Ok(()),
            });
            ask(model, Query::Search(SearchQuery { term: text.to_owned() }), reply);
        }
        parsed => reply.emit(parsed.map(drop)),
    }
}
