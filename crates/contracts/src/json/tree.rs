//! A JSON tree that borrows strings without escapes from the body: a conversation has about a hundred strings, and most
//! would otherwise be copied twice.

use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Number;

/// A JSON value of a body.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Tree<'b> {
    /// `null`.
    #[default]
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// Any number.
    Number(Number),
    /// A string.
    String(Cow<'b, str>),
    /// An array.
    Array(Vec<Tree<'b>>),
    /// An object.
    Object(Fields<'b>),
}

/// The fields of an object in document order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Fields<'b>(Vec<(Cow<'b, str>, Tree<'b>)>);

impl Tree<'_> {
    /// The JSON type with its article, for error messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::String(_) => "a string",
            Self::Array(_) => "an array",
            Self::Object(_) => "an object",
        }
    }
}

impl<'b> Fields<'b> {
    /// Takes a value and leaves `null` in its place. Of several fields with the same name the last one wins.
    pub fn take(&mut self, name: &str) -> Option<Tree<'b>> {
        let (_, value) = self.0.iter_mut().rev().find(|(field, _)| field == name)?;
        Some(std::mem::take(value))
    }

    /// Names of the fields that were not taken and are not `null`.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|(_, value)| *value != Tree::Null).map(|(name, _)| name.as_ref())
    }
}

/// Builds a [`Tree`] with a bounded number of values: a value of two bytes (`[]`) can take 128 bytes of memory.
#[derive(Clone, Copy)]
pub(super) struct TreeSeed<'l> {
    /// Names of the fields that are read, at any depth: `None` for all. The values of others are skipped without being built.
    pub(super) fields: Option<&'l [&'static str]>,
    /// Number of values that may still be built.
    pub(super) budget: &'l Cell<usize>,
}

impl<'b> DeserializeSeed<'b> for TreeSeed<'_> {
    type Value = Tree<'b>;

    fn deserialize<D: Deserializer<'b>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        let left = self.budget.get().checked_sub(1).ok_or_else(|| D::Error::custom("too many values"))?;
        self.budget.set(left);
        deserializer.deserialize_any(self)
    }
}

impl<'b> Visitor<'b> for TreeSeed<'_> {
    type Value = Tree<'b>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any valid JSON value")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Tree::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Tree::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Tree::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Tree::Number(value.into()))
    }

    /// The parser refuses numbers that are not finite, so `from_f64` does not fail.
    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Number::from_f64(value).map_or(Tree::Null, Tree::Number))
    }

    fn visit_borrowed_str<E>(self, value: &'b str) -> Result<Self::Value, E> {
        Ok(Tree::String(Cow::Borrowed(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
        Ok(Tree::String(Cow::Owned(value.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'b>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            array.push(item);
        }
        Ok(Tree::Array(array))
    }

    fn visit_map<A: MapAccess<'b>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::new();
        while let Some(Name(name)) = entries.next_key()? {
            if self.fields.is_none_or(|fields| fields.contains(&name.as_ref())) {
                fields.push((name, entries.next_value_seed(self)?));
            } else {
                entries.next_value::<Skipped>()?;
            }
        }
        Ok(Tree::Object(Fields(fields)))
    }
}

/// A skipped value: checked (escapes, numbers, depth) and not built. `IgnoredAny` would accept lone surrogates.
struct Skipped;

impl<'b> Deserialize<'b> for Skipped {
    fn deserialize<D: Deserializer<'b>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'b> Visitor<'b> for Skipped {
    type Value = Self;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any valid JSON value")
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'b>>(self, mut items: A) -> Result<Self, A::Error> {
        while items.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'b>>(self, mut entries: A) -> Result<Self, A::Error> {
        while entries.next_entry::<Self, Self>()?.is_some() {}
        Ok(self)
    }
}

/// A borrowed field name: without `borrow` serde's `Cow<str>` always copies.
#[derive(Deserialize)]
#[serde(transparent)]
struct Name<'b>(#[serde(borrow)] Cow<'b, str>);

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    const FIELDS: [&str; 5] = ["a", "b", "c", "", "a\n\u{e9}"];

    const BUDGET: usize = 200;

    fn parse(text: &[u8]) -> serde_json::Result<Tree<'_>> {
        let mut deserializer = serde_json::Deserializer::from_slice(text);
        let budget = Cell::new(BUDGET);
        let tree = TreeSeed { fields: Some(&FIELDS), budget: &budget }.deserialize(&mut deserializer)?;
        deserializer.end()?;
        Ok(tree)
    }

    /// The same tree as a `serde_json::Value`.
    fn value(tree: &Tree<'_>) -> Value {
        match tree {
            Tree::Null => Value::Null,
            Tree::Bool(flag) => Value::Bool(*flag),
            Tree::Number(number) => Value::Number(number.clone()),
            Tree::String(text) => Value::String(text.to_string()),
            Tree::Array(items) => Value::Array(items.iter().map(value).collect()),
            Tree::Object(fields) => {
                Value::Object(fields.0.iter().map(|(name, field)| (name.to_string(), value(field))).collect())
            }
        }
    }

    #[test]
    fn tree_and_errors_match_serde_json() {
        let deep = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        let texts = [
            r#"{"a": [1, -2, 3.5, 1e3, 18446744073709551615, -9223372036854775808], "b": {"c": null, "": true}}"#,
            r#"{"a\n\u00e9": "x\u0000y", "a": 1, "a": "the last one", "\u0061": "unescaped"}"#,
            "123456789012345678901234567890",
            "1e400",
            "[1,]",
            "{\"a\":1",
            "{1:2}",
            "\"\\ud800\"",
            "\"\u{1}\"",
            "nul",
            "[] []",
            // serde_json refuses the 128th level.
            &deep(127),
            &deep(128),
        ];
        for text in texts {
            let ours = parse(text.as_bytes()).map(|tree| value(&tree));
            let theirs = serde_json::from_str::<Value>(text);
            assert_eq!(ours.map_err(|e| e.to_string()), theirs.map_err(|e| e.to_string()), "{text}");
        }
        let invalid = b"{\"a\":\"\xff\"}";
        let ours = parse(invalid).map(|tree| value(&tree));
        let theirs = serde_json::from_slice::<Value>(invalid);
        assert_eq!(ours.map_err(|e| e.to_string()), theirs.map_err(|e| e.to_string()));
    }

    #[test]
    fn last_duplicate_field_wins_and_is_taken_once() {
        let Ok(Tree::Object(mut fields)) = parse(br#"{"a": 1, "\u0061": 2, "b": 3}"#) else {
            panic!("no object");
        };
        assert_eq!(fields.take("a"), Some(Tree::Number(2.into())));
        assert_eq!((fields.take("a"), fields.take("c")), (Some(Tree::Null), None));
    }

    #[test]
    fn values_of_other_fields_are_skipped() {
        let tree = parse(br#"{"x": [[[], {}], "y"], "a": {"z": [1, 2], "b": 3}, "a\u0062": 4}"#);
        assert_eq!(value(&tree.unwrap()), serde_json::json!({"a": {"b": 3}}));
        for invalid in [r#"{"x": "\ud800"}"#, r#"{"x": {"\udc00": 1}}"#, r#"{"x": [1e400]}"#] {
            assert!(parse(invalid.as_bytes()).is_err(), "{invalid}");
        }
    }

    #[test]
    fn values_beyond_the_budget_are_refused() {
        let text = |count: usize| format!("{{\"a\": [{}]}}", vec!["[]"; count].join(","));
        // The object and the outer array are values, too.
        assert!(parse(text(BUDGET - 2).as_bytes()).is_ok());
        assert!(parse(text(BUDGET - 1).as_bytes()).unwrap_err().to_string().starts_with("too many values"));
    }
}
