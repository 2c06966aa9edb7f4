//! Metrics of agreement between scores and labels.

mod agreement;
mod bootstrap;
mod classes;
mod ranks;

pub use self::agreement::{Agreement, weighted_kappa};
pub(crate) use self::bootstrap::confidence_interval;
pub(crate) use self::classes::CLASSES;
pub use self::classes::Confusion;
pub use self::ranks::spearman;
