//! The rules of imports, deletion and expiry, without I/O.

mod authors;
mod compressed_messages;
mod import;
mod participant;
mod removal;

pub use self::authors::{AgentReference, UnresolvedAuthors, references, resolve_authors};
pub use self::compressed_messages::{CompressError, DecompressError, decompress};
pub use self::import::{Import, ImportOutcome};
pub use self::participant::{Participant, latest_names, participants};
pub use self::removal::{RetentionCutoff, TicketDeletion};
