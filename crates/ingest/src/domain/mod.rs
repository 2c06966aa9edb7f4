//! What an import is and what follows from it.

mod authors;
mod import;
mod packed_messages;
mod participant;
mod removal;

pub use self::authors::{AgentReference, UnresolvedAuthors, references, resolve_authors};
pub use self::import::{Import, ImportOutcome};
pub use self::packed_messages::{PackError, UnpackError, unpack};
pub use self::participant::{Participant, latest_names, participants};
pub use self::removal::{Expiry, TicketDeletion};
