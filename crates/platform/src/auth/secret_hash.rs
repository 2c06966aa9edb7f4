//! Hashes of random secrets, which are stored and exchanged in place of the secrets.

/// Defines a SHA-256 of a kind of secret. Each kind is a separate type, so that one is never looked up as another.
macro_rules! secret_hash {
    ($(#[$doc:meta])+ $name:ident) => {
        $(#[$doc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub struct $name([u8; 32]);

        impl $name {
            fn of(secret: &str) -> Self {
                Self(<sha2::Sha256 as sha2::Digest>::digest(secret).into())
            }

            /// The 32 bytes, for storage.
            pub const fn as_bytes(&self) -> &[u8; 32] {
                &self.0
            }

            /// Decodes the hexadecimal form that services exchange.
            pub fn from_hex(text: &str) -> Option<Self> {
                let mut hash = [0; 32];
                hex::decode_to_slice(text, &mut hash).ok()?;
                Some(Self(hash))
            }
        }

        /// Lower-case hexadecimal.
        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str(&hex::encode(self.0))
            }
        }
    };
}

pub(super) use secret_hash;
