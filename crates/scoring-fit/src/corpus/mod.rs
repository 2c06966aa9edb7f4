//! The project's corpus: conversations, ratings by several raters, and the agreement of a scorer with the raters.
//!
//! A corpus is a folder: `writers.tsv` assigns each writer to a part (a [`CorpusPart`]), `conversations/WRITER.txt` has the
//! conversations, `ratings/WRITER.RATER.txt` the ratings by one rater.

mod benchmark;
mod conversations;
mod ratings;
mod report;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use assay_contracts::conversation::Conversation;
use serde::Serialize;

pub use self::benchmark::{Band, Benchmark, ConversationSet, Estimate, Figures, benchmark};
use self::conversations::read_conversations;
use self::ratings::{Rating, read_ratings};
use crate::data::DataError;

/// Part of the corpus; each writer belongs to one. The encoder is fitted on `train`, the linear step on `dev`, which also
/// serves for choices and calibration. `test` is for reports only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CorpusPart {
    /// For fitting the encoder.
    Train,
    /// For fitting the linear step, for choices and for calibration.
    Dev,
    /// For reports.
    Test,
}

impl CorpusPart {
    /// Every part.
    pub const ALL: [Self; 3] = [Self::Train, Self::Dev, Self::Test];

    /// Name in `writers.tsv` and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Dev => "dev",
            Self::Test => "test",
        }
    }

    /// Parses the name.
    pub fn parse(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|part| part.name() == name);
        found.ok_or_else(|| format!("the part is `{name}`: it must be `train`, `dev` or `test`"))
    }
}

/// Style in which a writer was asked to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wording {
    Everyday,
    Unusual,
    /// Tone and outcome disagree: friendly but unsolved, rude but solved.
    Tone,
}

impl Wording {
    fn parse(name: &str) -> Result<Self, String> {
        match name {
            "everyday" => Ok(Self::Everyday),
            "unusual" => Ok(Self::Unusual),
            "tone" => Ok(Self::Tone),
            _ => Err(format!("the wording is `{name}`: it must be `everyday`, `unusual` or `tone`")),
        }
    }
}

/// One line of `writers.tsv`.
struct Writer {
    name: String,
    part: CorpusPart,
    wording: Wording,
    language: String,
}

/// A conversation with its ratings.
#[derive(Debug)]
struct RatedConversation {
    conversation: Conversation,
    wording: Wording,
    /// Language of the writer; `mix` for several.
    language: String,
    /// One for each rater of the writer; `None` where that rater did not rate it.
    ratings: Vec<Option<Rating>>,
}

/// The rated conversations of one part of a corpus.
#[derive(Debug)]
pub struct Corpus {
    part: CorpusPart,
    rated: Vec<RatedConversation>,
}

impl Corpus {
    /// Reads one part.
    ///
    /// # Errors
    /// When a file cannot be read, naming the file and the line that is wrong, or when no conversation of the part is rated.
    pub fn read(folder: &Path, part: CorpusPart) -> Result<Self, DataError> {
        let writers = read_writers(&folder.join("writers.tsv"))?;
        let rating_files = rating_files(folder, &writers)?;
        let mut rated = Vec::new();
        for writer in writers.into_iter().filter(|writer| writer.part == part) {
            let of_writer = |path: &&PathBuf| writer_of(path).is_some_and(|name| name == writer.name);
            let files: Vec<&PathBuf> = rating_files.iter().filter(of_writer).collect();
            read_writer(folder, &writer, &files, &mut rated)?;
        }
        if rated.is_empty() {
            return Err(DataError::NothingRated { path: folder.to_owned(), part: part.name().to_owned() });
        }
        Ok(Self { part, rated })
    }

    /// The conversations, in order.
    pub fn conversations(&self) -> impl Iterator<Item = &Conversation> {
        self.rated.iter().map(|rated| &rated.conversation)
    }
}

/// Adds the rated conversations of a writer.
fn read_writer(
    folder: &Path,
    writer: &Writer,
    rating_files: &[&PathBuf],
    rated: &mut Vec<RatedConversation>,
) -> Result<(), DataError> {
    let conversations =
        read_conversations(&folder.join("conversations").join(format!("{}.txt", writer.name)))?;
    let mut by_rater = Vec::new();
    for path in rating_files {
        by_rater.push(read_ratings(path, &conversations)?);
    }
    for conversation in conversations {
        let ratings: Vec<Option<Rating>> =
            by_rater.iter_mut().map(|ratings| ratings.remove(&conversation.ticket_id)).collect();
        if ratings.iter().any(Option::is_some) {
            let language = writer.language.clone();
            rated.push(RatedConversation { conversation, wording: writer.wording, language, ratings });
        }
    }
    Ok(())
}

fn read_writers(path: &Path) -> Result<Vec<Writer>, DataError> {
    let mut names = BTreeSet::new();
    let mut writers = Vec::new();
    for (index, line) in read_text(path)?.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let refused = |reason: String| DataError::Line { path: path.to_owned(), line: index + 1, reason };
        if index == 0 {
            if !line.starts_with("writer\tpart\twording\tlanguage") {
                return Err(refused("it must name the columns writer, part, wording, language".to_owned()));
            }
            continue;
        }
        let writer = parse_writer(line).map_err(refused)?;
        if !names.insert(writer.name.clone()) {
            return Err(refused(format!("the writer {} was named before", writer.name)));
        }
        writers.push(writer);
    }
    Ok(writers)
}

fn parse_writer(line: &str) -> Result<Writer, String> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [name, part, wording, language, ..] = fields.as_slice() else {
        return Err(format!("it has {} fields separated by tabs: at least four are needed", fields.len()));
    };
    if name.is_empty() || language.is_empty() {
        return Err("the writer or the language is empty".to_owned());
    }
    let (part, wording) = (CorpusPart::parse(part)?, Wording::parse(wording)?);
    Ok(Writer { name: (*name).to_owned(), part, wording, language: (*language).to_owned() })
}

/// All files of ratings, in order. A file of an unknown writer is an error; otherwise it would be skipped unnoticed.
fn rating_files(folder: &Path, writers: &[Writer]) -> Result<Vec<PathBuf>, DataError> {
    let ratings = folder.join("ratings");
    let failed = |cause| DataError::File { path: ratings.clone(), cause };
    let mut files = Vec::new();
    for entry in fs::read_dir(&ratings).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "txt") {
            files.push(path);
        }
    }
    files.sort();
    let unknown = |path: &&PathBuf| !writers.iter().any(|writer| writer_of(path) == Some(&writer.name));
    match files.iter().find(unknown) {
        Some(path) => {
            let reason = "it must be called WRITER.RATER.txt, of a writer of writers.tsv".to_owned();
            Err(DataError::Line { path: path.clone(), line: 1, reason })
        }
        None => Ok(files),
    }
}

/// The writer in the name of a file of ratings, `WRITER.RATER.txt`.
fn writer_of(path: &Path) -> Option<&str> {
    let (writer, _rater) = path.file_stem()?.to_str()?.split_once('.')?;
    Some(writer)
}

fn read_text(path: &Path) -> Result<String, DataError> {
    fs::read_to_string(path).map_err(|cause| DataError::File { path: path.to_owned(), cause })
}
