//! Rules about requests of browsers: cookies, where a form came from, and where a page may lead back to.

/// The value of a cookie in the `Cookie` headers; `None` when there are several of this name.
pub(crate) fn cookie_value<'h>(headers: impl Iterator<Item = &'h str>, name: &str) -> Option<&'h str> {
    let mut values = headers.flat_map(|header| header.split(';')).filter_map(|pair| {
        let (known, value) = pair.trim().split_once('=')?;
        (known == name).then_some(value)
    });
    values.next().filter(|_| values.next().is_none())
}

/// Whether a form was sent by one of our own pages, as far as the browser says: `Sec-Fetch-Site`, or else `Origin`, whose
/// host must be ours. Other clients than browsers send neither; they need the form's token all the same.
pub(crate) fn is_own_form(sec_fetch_site: Option<&str>, origin: Option<&str>, own_host: &str) -> bool {
    if let Some(site) = sec_fetch_site {
        return site == "same-origin";
    }
    origin.is_none_or(|origin| {
        let host = origin.split_once("://").map(|(_, host)| host);
        host.is_some_and(|host| host.eq_ignore_ascii_case(own_host))
    })
}

/// Whether two secrets are the same, in a time that does not depend on where they differ.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    let differences = one.bytes().zip(other.bytes()).fold(0, |sum, (one, other)| sum | (one ^ other));
    one.len() == other.len() && differences == 0
}

/// Whether a page may redirect there: a path of the console on this host.
pub(crate) fn is_local_path(path: &str) -> bool {
    let is_console = path == "/console" || path.starts_with("/console/") || path.starts_with("/console?");
    is_console && !path.contains("//") && !path.contains('\\') && !path.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookie_is_found_among_others_and_repeated_ones_are_refused() {
        let value = |header: &'static str| cookie_value([header].into_iter(), "a");
        assert_eq!(value("a=1"), Some("1"));
        assert_eq!(value("b=2; a=1; c"), Some("1"));
        assert_eq!(value("aa=1; b=2"), None);
        assert_eq!(value("a=1; a=2"), None);
    }

    #[test]
    fn form_of_another_site_is_refused() {
        let host = "assay.example:8443";
        assert!(is_own_form(Some("same-origin"), None, host));
        assert!(is_own_form(None, Some("https://ASSAY.example:8443"), host));
        assert!(is_own_form(None, None, host));
        for site in ["cross-site", "same-site", "none", ""] {
            assert!(!is_own_form(Some(site), Some("https://assay.example:8443"), host), "{site}");
        }
        for origin in [
            "null",
            "https://evil.example",
            "https://assay.example",
            "https://evil.example/assay.example:8443",
        ] {
            assert!(!is_own_form(None, Some(origin), host), "{origin}");
        }
    }

    #[test]
    fn page_leads_back_to_paths_of_the_console_only() {
        for path in
            ["/console", "/console/keys", "/console?theme=dark", "/console/conversations?subject=a%20b"]
        {
            assert!(is_local_path(path), "{path}");
        }
        for path in [
            "",
            "/",
            "//evil.example",
            "/console//evil",
            "/consoleX",
            "https://evil",
            "/console/\\evil",
            "/console\n",
        ] {
            assert!(!is_local_path(path), "{path:?}");
        }
    }

    #[test]
    fn secrets_are_the_same_only_when_equal() {
        assert!(is_same("abc", "abc"));
        assert!(!is_same("abc", "abd") && !is_same("abc", "ab") && !is_same("", "a"));
    }
}
