//! What a question is: a type with the type of its answer.
//!
//! The table [`for_each_question`](crate::for_each_question) lists all questions. [`Query`] is any of them, and [`Answer`]
//! the answer to any of them: what crosses to a worker and back, and what a recording carries along.
//!
//! # Adding a question
//! 1. Its type and that of its answer in a file of this crate, with `impl Question`.
//! 2. A row of the table in `lib.rs`.
//! 3. Its computation in a file of `session::questions`, with `impl Answering`; the compiler asks for it.
//!
//! Nothing else lists questions. The test that a running job answers like its file asks the examples of all of them.

use std::fmt;

use crate::{Answer, Query};

/// A question about one device of one session.
pub trait Question: Clone + fmt::Debug + PartialEq {
    /// The type of its answer.
    type Answer: Clone + fmt::Debug + PartialEq;

    /// Returns whether its answer depends on the categories of allocations. Deriving them takes the whole trace, so they are
    /// derived only for questions that need them.
    fn needs_categories(&self) -> bool {
        false
    }
}

/// A question that is listed in the table. The table implements it.
pub trait Registered: Question + Into<Query> {
    /// Returns the answer to a question of this type, or the sentence for the user with which it was refused.
    fn answer_of(answer: Answer) -> Result<Self::Answer, String>;

    /// Returns an answer to a question of this type as an [`Answer`].
    fn into_answer(answer: Self::Answer) -> Answer;
}

/// Defines [`Query`] and [`Answer`] from the table.
macro_rules! define_questions {
    ($($(#[$doc:meta])* $name:ident($question:ty),)*) => {
        /// Any question about one device of one session.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        pub enum Query {
            $($(#[$doc])* $name($question),)*
        }

        /// The answer to a [`Query`]: the variant of the same name, unless it was refused.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        pub enum Answer {
            /// The question can't be answered for this trace: a sentence for the user.
            Refused(String),
            $($(#[$doc])* $name(<$question as Question>::Answer),)*
        }

        impl Query {
            /// Returns whether its answer depends on the categories of allocations.
            pub fn needs_categories(&self) -> bool {
                match self {
                    $(Self::$name(question) => question.needs_categories(),)*
                }
            }
        }

        $(
            impl From<$question> for Query {
                fn from(question: $question) -> Self {
                    Self::$name(question)
                }
            }

            impl Registered for $question {
                fn answer_of(answer: Answer) -> Result<Self::Answer, String> {
                    match answer {
                        Answer::$name(answer) => Ok(answer),
                        Answer::Refused(sentence) => Err(sentence),
                        _ => Err("This is the answer to another question.".to_owned()),
                    }
                }

                fn into_answer(answer: Self::Answer) -> Answer {
                    Answer::$name(answer)
                }
            }
        )*
    };
}
pub(crate) use define_questions;
