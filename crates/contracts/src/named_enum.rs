//! Enums with the same names on the wire, in databases and in exports.

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

    /// Every name, separated by commas.
    fn names() -> String {
        Self::ALL.iter().map(|value| value.name()).collect::<Vec<_>>().join(", ")
    }
}

macro_rules! named_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:tt,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
        pub enum $name {
            $($(#[$variant_doc])* #[serde(rename = $text)] $variant,)*
        }

        impl $name {
            /// Every value.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name on the wire and in exports; a `const fn`, which a trait cannot have.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// The value with exactly this name.
            pub fn from_name(name: &str) -> Option<Self> {
                $crate::named_enum::Named::from_name(name)
            }
        }

        impl $crate::named_enum::Named for $name {
            const ALL: &'static [Self] = Self::ALL;

            fn name(self) -> &'static str {
                self.as_str()
            }
        }
    };
}

pub(crate) use named_enum;
