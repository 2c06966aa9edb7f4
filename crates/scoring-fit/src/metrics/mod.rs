//! How well scores agree with human labels.

mod agreement;
mod bootstrap;
mod classes;
mod ranks;

pub use self::agreement::{Agreement, weighted_kappa};
pub(crate) use self::bootstrap::interval;
pub use self::classes::{Class, Confusion};
pub use self::ranks::spearman;
