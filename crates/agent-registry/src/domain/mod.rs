//! Types and rules of the registry.

mod agent;
mod key;
mod name;
mod retention;
mod session;

pub use self::agent::{ExternalIdHash, agent_facts, new_agent};
pub use self::key::{ActiveKey, KeyRecord, Revocation, USE_RECORD_INTERVAL_MILLIS};
pub use self::name::{InvalidName, KeyName, OrganizationName};
pub use self::retention::{
    DefaultRetention, OverrideChange, RetentionChange, RetentionOverrides, RetentionRecord,
};
pub use self::session::{ActiveSession, SIGN_IN_LINK_MILLIS, SessionLimits, SignIn, clean_user_agent};
