//! Roles: what a token is for.

use std::fmt;

/// What a token may do.
///
/// | role | may |
/// |---|---|
/// | `ingest` | send sessions, and end them; start the demo |
/// | `read` | list sessions, watch them, download them, ask their jobs for more, read the metrics |
/// | `share` | upload a recording to be shared by a link; keep, read and delete baselines |
/// | `admin` | everything that the other roles may, and pin and delete sessions |
///
/// No role but `admin` includes another one: a token for jobs can't read what other jobs recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Sends sessions.
    Ingest,
    /// Lists, watches and downloads sessions.
    Read,
    /// Uploads recordings to share them, and keeps baselines.
    Share,
    /// Does everything; pins and deletes sessions.
    Admin,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 4] = [Self::Ingest, Self::Read, Self::Share, Self::Admin];

    /// Returns its name, as the tokens file has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ingest => "ingest",
            Self::Read => "read",
            Self::Share => "share",
            Self::Admin => "admin",
        }
    }

    /// Returns the role of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name() == name)
    }

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A set of roles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Roles(u8);

impl Roles {
    /// Returns the set of every role.
    pub fn all() -> Self {
        Role::ALL.into_iter().collect()
    }

    /// Whether the set permits what a role may do: it has the role, or `admin`.
    pub fn permit(self, role: Role) -> bool {
        self.0 & (role.bit() | Role::Admin.bit()) != 0
    }

    /// Returns the roles that the set permits to act as: all of them if it has `admin`.
    pub fn permitted(self) -> impl Iterator<Item = Role> {
        Role::ALL.into_iter().filter(move |role| self.permit(*role))
    }

    /// Whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl FromIterator<Role> for Roles {
    fn from_iter<I: IntoIterator<Item = Role>>(roles: I) -> Self {
        Self(roles.into_iter().fold(0, |bits, role| bits | role.bit()))
    }
}

/// Writes the names, separated by commas.
impl fmt::Display for Roles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for role in Role::ALL.into_iter().filter(|role| self.0 & role.bit() != 0) {
            write!(f, "{separator}{role}")?;
            separator = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_admin_includes_other_roles() {
        for role in Role::ALL {
            let set: Roles = [role].into_iter().collect();
            for wanted in Role::ALL {
                assert_eq!(set.permit(wanted), wanted == role || role == Role::Admin, "{role} {wanted}");
            }
            assert_eq!((Role::named(role.name()), set.to_string()), (Some(role), role.name().to_owned()));
        }
        assert!(!Role::ALL.into_iter().any(|role| Roles::default().permit(role)));
        assert_eq!(Roles::all().to_string(), "ingest,read,share,admin");
        assert_eq!(Role::named("Ingest"), None);
    }
}
