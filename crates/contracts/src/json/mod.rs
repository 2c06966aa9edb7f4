//! Reading request bodies: every fault of a body in one answer, each with the place it was found at.
//!
//! A derived deserializer stops at the first fault; a person who connects a helpdesk wants to see all of them.
//! So bodies are parsed to a JSON tree, and the tree is taken apart field by field.

mod tree;

use std::borrow::Cow;

pub use self::tree::{Fields, Tree};
use crate::fault::{BodyError, Fault, MAX_NAME_CHARS, MAX_REPORTED_FAULTS};

/// Collects faults while a body is read.
#[derive(Debug, Default)]
pub struct Faults(Vec<Fault>);

impl Faults {
    /// Notes a fault at `pointer`; beyond the first [`MAX_REPORTED_FAULTS`] they are counted by nobody.
    pub fn add(&mut self, pointer: impl Into<String>, detail: impl Into<String>) {
        if self.0.len() < MAX_REPORTED_FAULTS {
            self.0.push(Fault { pointer: pointer.into(), detail: detail.into() });
        }
    }

    /// Whether as many faults were found as are reported: reading on is of no use.
    pub fn is_full(&self) -> bool {
        self.0.len() >= MAX_REPORTED_FAULTS
    }

    /// `value` when no fault was found and it could be read; else the faults.
    pub fn finish<T>(self, value: Option<T>) -> Result<T, BodyError> {
        match value {
            Some(value) if self.0.is_empty() => Ok(value),
            _ => Err(BodyError::Invalid(self.0)),
        }
    }
}

/// One object of a body that is being read.
pub struct ObjectReader<'f, 'b> {
    fields: Fields<'b>,
    pointer: String,
    faults: &'f mut Faults,
}

/// Parses a whole body into a JSON tree.
///
/// # Errors
/// [`BodyError::Malformed`] for anything that is not one JSON text: empty, truncated, nested too deeply,
/// not UTF-8, lone surrogates.
pub fn parse_tree(body: &[u8]) -> Result<Tree<'_>, BodyError> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Err(BodyError::Malformed("the body is empty: send a JSON object".to_owned()));
    }
    serde_json::from_slice(body).map_err(|error| BodyError::Malformed(error.to_string()))
}

impl<'f, 'b> ObjectReader<'f, 'b> {
    /// Starts to read `value`, which must be an object; `pointer` is its place in the body.
    pub fn new(value: Tree<'b>, pointer: impl Into<String>, faults: &'f mut Faults) -> Option<Self> {
        let pointer = pointer.into();
        match value {
            Tree::Object(fields) => Some(Self { fields, pointer, faults }),
            other => {
                faults.add(pointer, format!("must be an object, not {}", other.kind()));
                None
            }
        }
    }

    /// Where the collected faults go.
    pub fn faults(&mut self) -> &mut Faults {
        self.faults
    }

    /// The JSON Pointer of one of this object's fields.
    pub fn pointer_to(&self, field: &str) -> String {
        format!("{}/{field}", self.pointer)
    }

    /// Notes a fault of one field.
    pub fn fault(&mut self, field: &str, detail: impl Into<String>) {
        let pointer = self.pointer_to(field);
        self.faults.add(pointer, detail);
    }

    /// Takes a field out, whatever it is.
    pub fn take(&mut self, field: &str) -> Option<Tree<'b>> {
        self.fields.take(field)
    }

    /// Takes a field that must be there.
    pub fn required(&mut self, field: &str) -> Option<Tree<'b>> {
        let value = self.take(field);
        if value.is_none() {
            self.fault(field, "is required");
        }
        value
    }

    /// A required text of at least one character, of any length.
    pub fn required_text(&mut self, field: &str) -> Option<String> {
        let value = self.required(field)?;
        self.text(field, value)
    }

    /// A required id or name: 1 to [`MAX_NAME_CHARS`] characters.
    pub fn required_name(&mut self, field: &str) -> Option<String> {
        let text = self.required_text(field)?;
        self.name(field, text)
    }

    /// An optional id or name: when present, 1 to [`MAX_NAME_CHARS`] characters.
    pub fn optional_name(&mut self, field: &str) -> Option<String> {
        let value = self.take(field)?;
        self.name_of(field, value)
    }

    /// A value, already taken, that must be an id or name.
    pub fn name_of(&mut self, field: &str, value: Tree<'b>) -> Option<String> {
        let text = self.text(field, value)?;
        self.name(field, text)
    }

    /// An optional text that may be empty and of any length.
    pub fn optional_free_text(&mut self, field: &str) -> Option<String> {
        let value = self.take(field)?;
        self.string(field, value).map(Cow::into_owned)
    }

    /// An optional value of a closed list; `parse` finds it by its exact name.
    pub fn optional_choice<T>(
        &mut self,
        field: &str,
        names: &[&str],
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let value = self.take(field)?;
        self.choice(field, value, names, parse)
    }

    /// A required value of a closed list.
    pub fn required_choice<T>(
        &mut self,
        field: &str,
        names: &[&str],
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let value = self.required(field)?;
        self.choice(field, value, names, parse)
    }

    /// A value, already taken, of a closed list.
    pub fn choice<T>(
        &mut self,
        field: &str,
        value: Tree<'b>,
        names: &[&str],
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let text = self.string(field, value)?;
        let parsed = parse(&text);
        if parsed.is_none() {
            self.fault(field, format!("must be one of: {}", names.join(", ")));
        }
        parsed
    }

    /// An integer between `min` and `max`. A number without a fraction is an integer however it is written
    /// (JSON Schema 2020-12, section 6.1.1).
    pub fn integer(&mut self, field: &str, value: &Tree<'_>, min: i64, max: i64) -> Option<i64> {
        let Tree::Number(number) = value else {
            self.fault(field, format!("must be an integer, not {}", value.kind()));
            return None;
        };
        let integer = number.as_i64().or_else(|| {
            let float = number.as_f64()?;
            let exact = float.fract() == 0.0 && float.abs() < 9_007_199_254_740_992.0;
            exact.then_some(float as i64)
        });
        let in_range = integer.filter(|integer| (min..=max).contains(integer));
        if in_range.is_none() {
            self.fault(field, format!("must be an integer from {min} to {max}"));
        }
        in_range
    }

    fn text(&mut self, field: &str, value: Tree<'b>) -> Option<String> {
        let text = self.string(field, value)?;
        if text.is_empty() {
            self.fault(field, "must not be empty");
            return None;
        }
        Some(text.into_owned())
    }

    fn string(&mut self, field: &str, value: Tree<'b>) -> Option<Cow<'b, str>> {
        let text = match value {
            Tree::String(text) => text,
            other => {
                self.fault(field, format!("must be a string, not {}", other.kind()));
                return None;
            }
        };
        // PostgreSQL cannot hold NUL in a text.
        if text.contains('\0') {
            self.fault(field, "must not contain the NUL character (\\u0000)");
            return None;
        }
        Some(text)
    }

    fn name(&mut self, field: &str, text: String) -> Option<String> {
        // Bytes are at least as many as characters, so most names need no counting.
        if text.len() > MAX_NAME_CHARS && text.chars().count() > MAX_NAME_CHARS {
            self.fault(field, format!("must not be longer than {MAX_NAME_CHARS} characters"));
            return None;
        }
        Some(text)
    }
}
