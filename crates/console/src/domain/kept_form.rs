//! A form whose request failed, because its session had ended or a service did not answer. It is kept, so that its page can show it
//! again.

use super::list_state::{Pairs, with_query};

/// Browsers keep cookies of up to 4,096 bytes, with their attributes.
const MAX_COOKIE_BYTES: usize = 3_800;

/// A longer form is not kept: anyone may send one, and the page with it stays in memory until it is read.
const MAX_BYTES: usize = 16 * 1024;

/// The page of a form, and what was typed into it. Secrets are never typed into the forms of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeptForm {
    path: String,
    typed: Pairs,
}

impl KeptForm {
    /// The form that was sent to `path`, which is that of its page, too. `None` if nothing was typed (`csrf` is the token, `do` the
    /// button), and for more text than is kept.
    pub(crate) fn new(path: &str, fields: Pairs) -> Option<Self> {
        let typed: Pairs = fields.into_iter().filter(|(name, _)| name != "csrf" && name != "do").collect();
        let bytes: usize = typed.iter().map(|(name, value)| name.len() + value.len()).sum();
        (!typed.is_empty() && bytes <= MAX_BYTES).then(|| Self { path: path.to_owned(), typed })
    }

    /// The address of the page with the form.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn typed(&self) -> &Pairs {
        &self.typed
    }

    /// The value of the cookie: the path, with the fields as its query. `None` for more text than a cookie holds.
    pub(crate) fn cookie(&self) -> Option<String> {
        Some(with_query(&self.path, &self.typed)).filter(|address| address.len() <= MAX_COOKIE_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_typed_text_that_fits_into_a_cookie_is_kept_there() {
        let kept = |fields: &[(&str, &str)]| {
            let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            KeptForm::new("/console/keys", fields.collect())
        };
        let fields = [("csrf", "t"), ("name", "für; Ann"), ("scope", "assess"), ("scope", "agents")];
        let address = "/console/keys?name=f%C3%BCr%3B%20Ann&scope=assess&scope=agents";
        assert_eq!(kept(&fields).and_then(|form| form.cookie()).as_deref(), Some(address));
        assert_eq!(kept(&[("csrf", "t"), ("do", "test")]), None);
        let long = kept(&[("name", &"x".repeat(4_000))]).unwrap();
        assert_eq!((long.cookie(), long.typed()[0].1.len()), (None, 4_000));
        assert_eq!(kept(&[("name", &"x".repeat(17_000))]), None);
    }
}
