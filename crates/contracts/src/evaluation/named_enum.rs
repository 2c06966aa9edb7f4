//! Macro for enums with the same names on the wire and in exports.

use crate::conversation::AiTool;

/// An enum whose values have names.
pub trait Named: Copy + Ord + 'static {
    /// Every value, in the order of documentation.
    const ALL: &'static [Self];

    /// The name on the wire and in exports.
    fn name(self) -> &'static str;

    /// The value with exactly this name.
    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|value| value.name() == name)
    }
}

impl Named for AiTool {
    const ALL: &'static [Self] = Self::ALL;

    fn name(self) -> &'static str {
        self.as_str()
    }
}

macro_rules! named_enum {
    ($(#[$doc:meta])* $name:ident, $rename:tt { $($(#[$variant_doc:meta])* $variant:ident = $text:tt,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
        #[serde(rename_all = $rename)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)*
        }

        impl $name {
            /// Every value.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name on the wire and in exports.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }

        impl $crate::evaluation::Named for $name {
            const ALL: &'static [Self] = Self::ALL;

            fn name(self) -> &'static str {
                self.as_str()
            }
        }
    };
}

pub(crate) use named_enum;
