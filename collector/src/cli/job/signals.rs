//! Signals that reach `vramscope watch` while its job runs.
//!
//! The job must not notice that it has a parent. It runs in the same process group, so that Ctrl-C and Ctrl-Z on the
//! terminal reach it by themselves; what another process sends to the parent alone is passed on. In the end the parent
//! ends as the job did: with the same exit code, or by the same signal.

use std::process::{Child, ExitCode, ExitStatus};

#[cfg(unix)]
mod unix {
    use std::process::Child;
    use std::thread;

    use rustix::process::{Pid, Signal, kill_process};
    use signal_hook::consts::{SIGALRM, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
    use signal_hook::iterator::exfiltrator::WithOrigin;
    use signal_hook::iterator::{Handle, SignalsInfo};
    use signal_hook::low_level::siginfo::Cause;

    /// Passes signals on to the job from its creation until it is dropped.
    pub(in crate::cli) struct Forwarding(Handle);

    /// The handlers, which must exist before the job does: a signal in between would end the parent alone.
    pub(in crate::cli) struct Handlers {
        signals: SignalsInfo<WithOrigin>,
        /// Signals that this process was started to ignore. The job inherits that, as it would without its parent, but
        /// not a handler in its place: `nohup` would not protect it. So their handlers are installed once it runs.
        ignored: Vec<i32>,
    }

    impl Handlers {
        /// Installs the handlers. The error is a sentence for people.
        pub(in crate::cli) fn install() -> Result<Self, String> {
            let set = std::fs::read_to_string("/proc/self/status").map_or(0, |status| ignored(&status));
            let all = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGCONT];
            let (ignored, handled): (Vec<_>, Vec<_>) = all.iter().partition(|signal| set >> (**signal - 1) & 1 == 1);
            let signals = SignalsInfo::<WithOrigin>::new(handled)
                .map_err(|error| format!("Signals can't be passed on to the job: {error}."))?;
            Ok(Self { signals, ignored })
        }

        /// Passes on what arrives from now on.
        pub(in crate::cli) fn forward_to(self, child: &Child) -> Forwarding {
            let Self { mut signals, ignored } = self;
            let handle = signals.handle();
            for signal in ignored {
                // The job may have its own handler. Without ours it misses the signal, but it runs: that is no error.
                let _ = handle.add_signal(signal);
            }
            let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
            thread::spawn(move || {
                for origin in signals.forever() {
                    // What the kernel sends for the terminal, it sends to the whole group: the job has it already.
                    let is_sent = matches!(origin.cause, Cause::Sent(_));
                    if let (true, Some(pid), Some(signal)) = (is_sent, pid, Signal::from_named_raw(origin.signal)) {
                        // Fails if the job has just ended.
                        let _ = kill_process(pid, signal);
                    }
                }
            });
            Forwarding(handle)
        }
    }

    /// Returns the set of ignored signals in a process's status, as the system writes it: bit n - 1 is signal n.
    fn ignored(status: &str) -> u64 {
        let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        line.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or(0)
    }

    impl Drop for Forwarding {
        fn drop(&mut self) {
            self.0.close();
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn ignored_signals_are_read() {
            assert_eq!(ignored("Name:\tx\nSigIgn:\t0000000000001003\nSigCgt:\t00000001\n"), 0x1003);
            assert_eq!(ignored("Name:\tx\n"), 0);
        }
    }
}

#[cfg(unix)]
pub(in crate::cli) use unix::Handlers;

/// Waits for the job. The standard input stays open for it.
pub(in crate::cli) fn wait(child: &mut Child) -> Result<ExitStatus, String> {
    child.wait().map_err(|error| format!("The job can't be waited for: {error}."))
}

/// Returns the line that names the signal that ended the job, if one did: its own, or that of a program which a shell ran
/// for it, as which the status 128 + n is understood.
pub(in crate::cli) fn killed_by(status: ExitStatus) -> Option<String> {
    #[cfg(unix)]
    {
        use signal_hook::low_level::signal_name;
        if let Some(number) = std::os::unix::process::ExitStatusExt::signal(&status) {
            let name = signal_name(number).map_or_else(|| format!("signal {number}"), str::to_owned);
            return Some(format!("The job was ended by {name}{}", hint(number)));
        }
        let number = status.code()?.checked_sub(128).filter(|number| *number > 0)?;
        let name = signal_name(number)?;
        Some(format!("The job ended with status {}, as after {name}{}", number + 128, hint(number)))
    }
    #[cfg(not(unix))]
    {
        let _ = status;
        None
    }
}

/// Returns what else there is to say about a signal.
#[cfg(unix)]
fn hint(number: i32) -> &'static str {
    // Linux sends it to the largest process when the machine's memory is used up; the kernel's log tells.
    if cfg!(target_os = "linux") && number == signal_hook::consts::SIGKILL {
        " (as Linux does when the machine's memory runs out; see dmesg)"
    } else {
        ""
    }
}

/// Ends as the job did: returns its exit code, or ends this process by the signal that ended the job.
pub(in crate::cli) fn end_as(status: ExitStatus) -> ExitCode {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        use rustix::process::{Resource, Rlimit, setrlimit};
        // The job has left its core; this process would only leave a second one.
        let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
        // Returns only for signals that don't end a process.
        let _ = signal_hook::low_level::emulate_default_handler(signal);
        return ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX));
    }
    let code = status.code().unwrap_or(1);
    u8::try_from(code).map_or_else(|_| std::process::exit(code), ExitCode::from)
}
