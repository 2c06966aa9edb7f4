//! Generated secrets of a stack: passwords of the database users and keys of the services.

use std::{collections::btree_map::Entry, path::Path};

use anyhow::Result;

use super::variables;
use crate::{
    launcher::{self, Settings},
    random::hex_secret,
};

/// The secret with which services sign and check the tokens of their calls to each other.
const SERVICE_TOKEN_SECRET: &str = "ASSAY_SECURITY__SERVICE_TOKEN_SECRET";

/// The keys of signed download addresses and cursors, as `ID:KEY`.
const SIGNING_KEYS: &str = "ASSAY_SECURITY__SIGNING_KEYS";

/// The length of a key, which is written with twice as many hexadecimal digits.
const KEY_BYTES: usize = 32;

/// The length of a password, which is written in hexadecimal, too.
const PASSWORD_BYTES: usize = 24;

/// The secrets of one stack.
pub(super) struct Secrets(Settings);

impl Secrets {
    /// Reads the file and adds what is missing in it.
    pub(super) fn load_or_generate(path: &Path) -> Result<Self> {
        let mut secrets = variables::read(path)?.unwrap_or_default();
        let known = secrets.len();
        let mut generate = |name: String, prefix: &str, bytes: usize| {
            if let Entry::Vacant(missing) = secrets.entry(name) {
                missing.insert(format!("{prefix}{}", hex_secret(bytes)?));
            }
            anyhow::Ok(())
        };
        generate(SERVICE_TOKEN_SECRET.to_owned(), "", KEY_BYTES)?;
        generate(SIGNING_KEYS.to_owned(), "k1:", KEY_BYTES)?;
        for owner in launcher::owners() {
            generate(password_name(owner.user), "", PASSWORD_BYTES)?;
        }
        if secrets.len() > known {
            variables::write(path, &secrets)?;
        }
        Ok(Self(secrets))
    }

    /// The password of a database user.
    pub(super) fn password_of(&self, user: &str) -> &str {
        self.0.get(&password_name(user)).map_or("", String::as_str)
    }

    /// Those that are settings of the executable.
    pub(super) fn settings(&self) -> impl Iterator<Item = (&str, &str)> {
        [SERVICE_TOKEN_SECRET, SIGNING_KEYS]
            .into_iter()
            .filter_map(|name| Some((name, self.0.get(name)?.as_str())))
    }
}

fn password_name(user: &str) -> String {
    format!("{}_PASSWORD", user.to_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_differ_between_stacks() {
        let folder = tempfile::tempdir().unwrap();
        let load = |name: &str| Secrets::load_or_generate(&folder.path().join(name)).unwrap().0;
        assert_ne!(load("one"), load("two"));
    }

    #[test]
    fn keys_have_32_bytes_and_every_database_user_has_a_password() {
        let folder = tempfile::tempdir().unwrap();
        let secrets = Secrets::load_or_generate(&folder.path().join("secrets")).unwrap();
        let settings: Settings =
            secrets.settings().map(|(name, value)| (name.into(), value.into())).collect();
        assert_eq!(settings[SERVICE_TOKEN_SECRET].len(), 64);
        assert_eq!(settings[SIGNING_KEYS].len(), "k1:".len() + 64);
        assert!(launcher::owners().iter().all(|owner| secrets.password_of(owner.user).len() == 48));
    }
}
