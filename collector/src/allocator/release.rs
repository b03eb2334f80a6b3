//! Which release of PyTorch the allocator decides as.

use shared::allocator::Profile;

/// A release that was named, and the profile that stands for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    /// How the allocator decides.
    pub profile: &'static Profile,
    /// Whether it is that very release that was compared, not one before or after it.
    pub is_exact: bool,
}

/// A release that nothing is known of.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("torch {name:?} is no release that is known. Known are {known}; later ones act as these.")]
pub struct ReleaseError {
    /// What was named.
    pub name: String,
    /// The releases that have a profile.
    pub known: String,
}

impl Release {
    /// Finds the profile for a release by its version: `2.11`, `2.11.0+cu130`.
    ///
    /// # Errors
    /// For text that is no version, and for releases before the first that is known.
    pub fn of(torch: &str) -> Result<Self, ReleaseError> {
        let Some(profile) = Profile::of(torch) else {
            return Err(ReleaseError { name: torch.to_owned(), known: Self::known() });
        };
        let rest = torch.strip_prefix(profile.torch);
        let is_exact = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '+', 'a']));
        Ok(Self { profile, is_exact })
    }

    /// The same for a release that runs, whichever it is: earlier ones than the first that is known act as that one.
    ///
    /// # Errors
    /// For text that is no version.
    pub fn of_running(torch: &str) -> Result<Self, ReleaseError> {
        let is_version = torch.split(['.', '+', 'a']).take(2).filter(|part| part.parse::<u32>().is_ok()).count() == 2;
        match (Self::of(torch), Profile::ALL.first()) {
            (Err(_), Some(profile)) if is_version => Ok(Self { profile, is_exact: false }),
            (found, _) => found,
        }
    }

    /// The releases that have a profile, in words: `2.6, 2.11, 2.15`.
    pub fn known() -> String {
        Profile::ALL.map(|profile| profile.torch).join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_release_always_has_a_profile() {
        let cases = [
            ("2.11.0+cu130", Some(("2.11", true))),
            ("2.12.1", Some(("2.11", false))),
            ("2.15.0a0+git123", Some(("2.15", true))),
            ("2.6.0", Some(("2.6", true))),
            ("2.4.1", Some(("2.6", false))),
            ("1.13", Some(("2.6", false))),
            ("2", None),
            ("newest", None),
            ("", None),
        ];
        for (torch, want) in cases {
            let found = Release::of_running(torch).ok().map(|found| (found.profile.torch, found.is_exact));
            assert_eq!(found, want, "{torch}");
        }
        assert!(Release::of("2.4.1").is_err_and(|error| error.to_string().contains("Known are 2.6, 2.11, 2.15;")));
    }
}
