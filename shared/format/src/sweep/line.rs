//! The command that repeats one run of a sweep.

use std::fmt::Write;

use super::Sweep;
use trace::text::quoted;

impl Sweep {
    /// Returns the line for a shell that runs the workload with one value, under the same conditions. The document may be
    /// anybody's: each word that a shell could read as more than text is quoted.
    pub fn command(&self, value: &str) -> String {
        let mut line = format!("vramscope run {}", quoted(&self.story));
        let swept = [(&self.param, value)];
        let choices = self.choices.iter().map(|(name, value)| (name, value.as_str()));
        for (name, value) in choices.chain(swept) {
            push(&mut line, &quoted(&format!("{name}={value}")));
        }
        push(&mut line, &format!("--capacity {}", size(self.capacity_bytes)));
        if !self.conf.is_empty() {
            push(&mut line, &format!("--conf {}", quoted(&self.conf)));
        }
        push(&mut line, &format!("--torch {} --seed {} --steps {}", quoted(&self.torch), self.seed, self.steps));
        line
    }
}

fn push(line: &mut String, words: &str) {
    // Writing to a string never fails.
    let _ = write!(line, " {words}");
}

/// Returns a size as options accept it, without rounding.
fn size(bytes: u64) -> String {
    match bytes {
        0 => "0".to_owned(),
        _ if bytes.is_multiple_of(1 << 30) => format!("{}GiB", bytes >> 30),
        _ if bytes.is_multiple_of(1 << 20) => format!("{}MiB", bytes >> 20),
        _ => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::sweep;
    use super::*;

    #[test]
    fn a_line_has_all_that_the_run_had() {
        assert_eq!(
            sweep().command("280"),
            "vramscope run resnet-sweep image=224 precision=fp32 batch=280 --capacity 40GiB \
             --conf 'roundup_power2_divisions:[256:1,>:2]' --torch 2.11 --seed 1 --steps 8"
        );
        let usual = Sweep { conf: String::new(), capacity_bytes: (40 << 30) - (512 << 20), ..sweep() };
        assert!(usual.command("8").ends_with("batch=8 --capacity 40448MiB --torch 2.11 --seed 1 --steps 8"));
        assert_eq!([0, 1, 1 << 21, 3 << 30].map(size), ["0", "1", "2MiB", "3GiB"]);
    }

    #[test]
    fn what_a_shell_would_run_is_text() {
        let hostile = Sweep { conf: "a:1'; rm -rf ~ #\n$(id)".to_owned(), ..sweep() };
        assert!(hostile.command("1").contains(" --conf 'a:1'\\''; rm -rf ~ # $(id)' --torch"));
    }
}
