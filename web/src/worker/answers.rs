//! The last answers of a file's worker. Several views ask the same, and a view that is shown again asks what it asked before:
//! as long as the file's data is the same, the answer is here at once.

use std::rc::Rc;

use query::{Answer, Query};

/// The most bytes that the answers of a file have, as the worker sent them. The picture of a window has up to some two
/// million.
const MOST_BYTES: usize = 16 << 20;
/// What an answer counts at least, since all are looked through.
const LEAST_BYTES: usize = MOST_BYTES / 128;

/// The last answers about the present data of a file.
#[derive(Default)]
pub struct Answers {
    /// The one that was used last is at the end.
    kept: Vec<Kept>,
    version: u32,
}

struct Kept {
    device: u32,
    query: Query,
    answer: Rc<Answer>,
    bytes: usize,
}

impl Answers {
    /// Returns the version of the data. It is another after each change.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Forgets all answers, because the data has changed.
    pub fn outdate(&mut self) {
        self.kept.clear();
        self.version = self.version.wrapping_add(1);
    }

    /// Keeps the answer to a question about a device, unless the data has changed since its `version`. Those that were not
    /// used for longest make room for it. `bytes` is the length of the worker's message.
    pub fn keep(&mut self, version: u32, (device, query): (u32, Query), answer: &Rc<Answer>, bytes: usize) {
        if version != self.version || bytes > MOST_BYTES {
            return;
        }
        let bytes = bytes.max(LEAST_BYTES);
        while self.kept.iter().fold(bytes, |sum, kept| sum + kept.bytes) > MOST_BYTES {
            self.kept.remove(0);
        }
        self.kept.push(Kept { device, query, answer: Rc::clone(answer), bytes });
    }

    /// Returns the answer to a question about a device, if it is kept.
    pub fn recall(&mut self, device: u32, query: &Query) -> Option<Rc<Answer>> {
        let at = self.kept.iter().rposition(|kept| kept.device == device && kept.query == *query)?;
        let kept = self.kept.remove(at);
        let answer = Rc::clone(&kept.answer);
        self.kept.push(kept);
        Some(answer)
    }
}

#[cfg(test)]
mod tests {
    use query::StateQuery;

    use super::*;

    fn question(position: u32) -> Query {
        Query::State(StateQuery { position })
    }

    fn keep(answers: &mut Answers, position: u32, bytes: usize) {
        let answer = Rc::new(Answer::Refused(position.to_string()));
        answers.keep(answers.version(), (0, question(position)), &answer, bytes);
    }

    /// Returns which of the questions are answered.
    fn known(answers: &mut Answers, positions: &[u32]) -> Vec<u32> {
        let is_known = |position: &u32| answers.recall(0, &question(*position)).is_some();
        positions.iter().copied().filter(is_known).collect()
    }

    #[test]
    fn an_answer_is_of_its_question_and_its_device() {
        let mut answers = Answers::default();
        keep(&mut answers, 7, 10);
        assert_eq!(answers.recall(0, &question(7)).as_deref(), Some(&Answer::Refused("7".to_owned())));
        assert_eq!(answers.recall(0, &question(8)), None);
        assert_eq!(answers.recall(1, &question(7)), None);
    }

    #[test]
    fn data_that_changed_leaves_no_answer_and_takes_none_to_an_earlier_question() {
        let mut answers = Answers::default();
        let asked = answers.version();
        keep(&mut answers, 1, 10);
        answers.outdate();
        answers.keep(asked, (0, question(2)), &Rc::new(Answer::Refused(String::new())), 10);
        assert_eq!(known(&mut answers, &[1, 2]), []);
    }

    #[test]
    fn what_was_not_used_for_longest_makes_room() {
        let mut answers = Answers::default();
        keep(&mut answers, 1, MOST_BYTES / 2);
        keep(&mut answers, 2, MOST_BYTES / 2);
        assert_eq!(known(&mut answers, &[2, 1]), [2, 1]);
        keep(&mut answers, 3, MOST_BYTES / 2);
        assert_eq!(known(&mut answers, &[1, 2, 3]), [1, 3]);
        keep(&mut answers, 4, MOST_BYTES + 1);
        assert_eq!(known(&mut answers, &[1, 3, 4]), [1, 3]);
        for position in 10..10 + 128 {
            keep(&mut answers, position, 0);
        }
        assert_eq!(known(&mut answers, &[1, 3, 10, 11]), [10, 11]);
    }
}
