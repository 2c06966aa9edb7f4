//! A form that was sent in vain: after its session had ended, or while a service did not answer.

use super::list_state::{Pairs, with_query};

/// Browsers keep cookies of up to 4,096 bytes, with their attributes.
const MAX_BYTES: usize = 3_800;

/// The page of a form, and what was typed into it. Secrets are never typed into the forms of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeptForm {
    path: String,
    /// As a query, with its question mark.
    typed: String,
}

impl KeptForm {
    /// The form that was sent to `path`, which is that of its page, too. `None` for a mere button, and for more text than a
    /// cookie holds.
    pub(crate) fn new(path: &str, fields: Pairs) -> Option<Self> {
        let typed: Pairs = fields.into_iter().filter(|(name, _)| name != "csrf" && name != "do").collect();
        let form = Self { path: path.to_owned(), typed: with_query("", &typed) };
        (!typed.is_empty() && form.path.len() + form.typed.len() <= MAX_BYTES).then_some(form)
    }

    /// The address of the page with the form.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// The value of the cookie: an address.
    pub(crate) fn address(&self) -> String {
        format!("{}{}", self.path, self.typed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_typed_text_that_fits_into_a_cookie_is_kept() {
        let kept = |fields: &[(&str, &str)]| {
            let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            KeptForm::new("/console/keys", fields.collect()).map(|form| form.address())
        };
        let fields = [("csrf", "t"), ("name", "für; Ann"), ("scope", "assess"), ("scope", "agents")];
        let address = "/console/keys?name=f%C3%BCr%3B%20Ann&scope=assess&scope=agents";
        assert_eq!(kept(&fields).as_deref(), Some(address));
        assert_eq!(kept(&[("csrf", "t"), ("do", "test")]), None);
        assert_eq!(kept(&[("name", &"x".repeat(4_000))]), None);
    }
}
