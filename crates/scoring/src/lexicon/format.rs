//! The line format of the phrase lists.
//!
//! A list is a text file of sections. A section starts with `[name]`, must say `why:` it exists, and holds one
//! entry a line. Lines that start with `# ` are comments.

use super::LexiconError;

/// One section of a list.
#[derive(Debug)]
pub(super) struct Section<'a> {
    /// Name in brackets.
    pub name: &'a str,
    /// Entries as written, in order.
    pub entries: Vec<&'a str>,
}

/// Reads the sections of a list; `file` names it in errors.
pub(super) fn sections<'a>(file: &'static str, text: &'a str) -> Result<Vec<Section<'a>>, LexiconError> {
    let mut sections: Vec<Section<'a>> = Vec::new();
    let mut explained = true;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        let fault = |reason| LexiconError::Format { file, line: index + 1, reason };
        if line.is_empty() || line.starts_with("# ") {
            continue;
        }
        if let Some(name) = section_name(line) {
            if !explained {
                return Err(fault("the section before this one has no `why:` line"));
            }
            explained = false;
            sections.push(Section { name, entries: Vec::new() });
            continue;
        }
        let Some(section) = sections.last_mut() else {
            return Err(fault("an entry stands before the first `[section]`"));
        };
        if line.starts_with("why:") {
            explained = true;
        } else if explained {
            section.entries.push(line);
        } else {
            return Err(fault("a section begins with a `why:` line"));
        }
    }
    Ok(sections)
}

/// The name in a line that is a section's head. A phrase may begin with a bracket, too; names are plain words.
fn section_name(line: &str) -> Option<&str> {
    let name = line.strip_prefix('[')?.strip_suffix(']')?;
    let plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    // `[system]` and `[inst]` are phrases of the safety list.
    (plain && name != "system" && name != "inst" && name != "admin").then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_into_sections_with_their_entries() {
        let read = sections(
            "test",
            "# a comment\n[thanks]\nwhy: a reason\nthank you\n^thanks\n\n[close]\nwhy: b\nbye\n",
        );
        let read = read.unwrap();
        assert_eq!(read.iter().map(|section| section.name).collect::<Vec<_>>(), ["thanks", "close"]);
        assert_eq!(read[0].entries, ["thank you", "^thanks"]);
    }

    #[test]
    fn a_section_without_a_reason_is_refused_with_its_line() {
        for (text, line) in [("[thanks]\nthank you\n", 2), ("thanks\n", 1), ("[a]\n[b]\nwhy: x\n", 2)] {
            let error = sections("test.txt", text).unwrap_err().to_string();
            assert!(error.starts_with(&format!("test.txt, line {line}:")), "{error}");
        }
    }
}
