//! Chooses the release of PyTorch whose decisions the allocator makes.

use allocator::Profile;

/// The profile that was chosen for a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    /// The rules of the allocator.
    pub profile: &'static Profile,
    /// Whether the profile was verified against this release, not against one before or after it.
    pub is_exact: bool,
}

/// A release without a profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Unknown torch release {name:?}. Known releases are {known}; other releases use the nearest older profile.")]
pub struct ReleaseError {
    /// The requested release.
    pub name: String,
    /// The releases that have a profile.
    pub known: String,
}

impl Release {
    /// Returns the profile for a version: `2.11`, `2.11.0+cu130`.
    ///
    /// # Errors
    /// For a text that is not a version, and for releases before the first profile.
    pub fn of(torch: &str) -> Result<Self, ReleaseError> {
        let Some(profile) = Profile::of(torch) else {
            return Err(ReleaseError { name: torch.to_owned(), known: Self::known() });
        };
        let rest = torch.strip_prefix(profile.torch);
        let is_exact = rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '+', 'a']));
        Ok(Self { profile, is_exact })
    }

    /// Returns the profile for the running release. Releases before the first profile use that one.
    ///
    /// # Errors
    /// For a text that is not a version.
    pub fn of_running(torch: &str) -> Result<Self, ReleaseError> {
        let is_version = torch.split(['.', '+', 'a']).take(2).filter(|part| part.parse::<u32>().is_ok()).count() == 2;
        match (Self::of(torch), Profile::ALL.first()) {
            (Err(_), Some(profile)) if is_version => Ok(Self { profile, is_exact: false }),
            (found, _) => found,
        }
    }

    /// Returns the releases that have a profile: `2.4, 2.5, 2.6`.
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
            ("2.12.1", Some(("2.12", true))),
            ("2.16.0", Some(("2.15", false))),
            ("2.15.0a0+git123", Some(("2.15", true))),
            ("2.6.0", Some(("2.6", true))),
            ("2.4.1", Some(("2.4", true))),
            ("2.3.1", Some(("2.4", false))),
            ("1.13", Some(("2.4", false))),
            ("2", None),
            ("newest", None),
            ("", None),
        ];
        for (torch, want) in cases {
            let found = Release::of_running(torch).ok().map(|found| (found.profile.torch, found.is_exact));
            assert_eq!(found, want, "{torch}");
        }
        assert!(
            Release::of("2.3.1")
                .is_err_and(|error| error.to_string().contains("Known releases are 2.4, 2.5, 2.6, 2.7, 2.8,"))
        );
    }
}
