//! Macro for enums with the same names on the wire and in exports.

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
    };
}

pub(super) use named_enum;
