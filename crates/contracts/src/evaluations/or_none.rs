//! A value of a filter that may also mean "none".

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::openapi::{ObjectBuilder, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::conversation::AiTool;
use crate::ids::AgentId;
use crate::named_enum::Named;

/// A value, or `none` for conversations without one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OrNone<T> {
    /// Conversations with this value.
    Value(T),
    /// Conversations without any.
    None,
}

impl<T> OrNone<T> {
    /// The value; [`None`] for conversations without one.
    pub fn value(self) -> Option<T> {
        match self {
            Self::Value(value) => Some(value),
            Self::None => None,
        }
    }
}

impl<T: fmt::Display> fmt::Display for OrNone<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(value) => value.fmt(formatter),
            Self::None => formatter.write_str("none"),
        }
    }
}

impl fmt::Display for AiTool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for OrNone<AiTool> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self::None);
        }
        let unknown = || format!("must be one of: {}, none", AiTool::names());
        AiTool::from_name(text).map(Self::Value).ok_or_else(unknown)
    }
}

impl FromStr for OrNone<AgentId> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self::None);
        }
        text.parse().map(Self::Value).map_err(|_| "must be the id of an agent, or `none`".to_owned())
    }
}

impl<T: fmt::Display> Serialize for OrNone<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de, T> Deserialize<'de> for OrNone<T>
where
    Self: FromStr<Err = String>,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// The schema of `OrNone<AiTool>`: a derived schema cannot refer to one instance of a generic type.
pub(super) struct AiToolOrNone;

impl PartialSchema for AiToolOrNone {
    fn schema() -> RefOr<Schema> {
        let names = AiTool::ALL.iter().map(|tool| tool.as_str()).chain(["none"]);
        ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names)).into()
    }
}

impl ToSchema for AiToolOrNone {}
