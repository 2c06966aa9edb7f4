//! The groups of phrases; what each is for stands beside its phrases in the lists.

macro_rules! groups {
    ($($variant:ident = $name:literal,)*) => {
        /// A group of phrases with one meaning. Its reason to exist is the `why:` line in the list.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Group {
            $($variant,)*
            /// Made by the reader: praise or a word of success behind a negation.
            Negated,
        }

        impl Group {
            /// Every group that a list holds.
            pub(super) const LISTED: &'static [Self] = &[$(Self::$variant,)*];

            /// The group whose section is called `name`.
            pub(super) fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }

            /// The section's name.
            pub(super) const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* Self::Negated => "negated" }
            }
        }
    };
}

groups! {
    Thanks = "thanks",
    Close = "close",
    Praise = "praise",
    Confirmation = "confirmation",
    Outcome = "outcome",
    Negation = "negation",
    NegationBehind = "negation_behind",
    Rejection = "rejection",
    Trouble = "trouble",
    Still = "still",
    StillBenign = "still_benign",
    Frustration = "frustration",
    Disagree = "disagree",
    PlainNo = "plain_no",
    PlainYes = "plain_yes",
    Repetition = "repetition",
    HumanRequest = "human_request",
    HumanWord = "human_word",
    HumanDecline = "human_decline",
    Urgency = "urgency",
    GiveUp = "give_up",
    Acknowledge = "acknowledge",
    Consent = "consent",
    Request = "request",
    Contrast = "contrast",
    Conditional = "conditional",
    Idiom = "idiom",
    Now = "now",
    Fine = "fine",
    Able = "able",
    Alternative = "alternative",
    Demand = "demand",
    Accusation = "accusation",
    Plea = "plea",
    ProductQuestion = "product_question",
    ServiceFailure = "service_failure",
    Approval = "approval",
    Sarcasm = "sarcasm",
    SarcasmWeak = "sarcasm_weak",
    SarcasmCue = "sarcasm_cue",
    HumanVerb = "human_verb",
    HumanNoun = "human_noun",
    Apology = "apology",
    Refusal = "refusal",
    Policy = "policy",
    Confusion = "confusion",
    AskInformation = "ask_information",
    AskIdentifier = "ask_identifier",
    AnythingElse = "anything_else",
    AsksOutcome = "asks_outcome",
    Offer = "offer",
    AsksTrouble = "asks_trouble",
    EmptyAnswer = "empty_answer",
    Done = "done",
    Failure = "failure",
    NothingFound = "nothing_found",
    Deflection = "deflection",
    Instruction = "instruction",
    TransferPromise = "transfer_promise",
    TransferOffer = "transfer_offer",
    Injection = "injection",
    Lookalike = "lookalike",
    HumanWork = "human_work",
    TransferEvent = "transfer_event",
}

impl Group {
    /// Whether a conversation in any language can hold it. Records are mostly written by machines in English; how
    /// words are negated, and which of them look like English ones, is each language's own affair.
    pub(super) const fn is_needed_in_every_language(self) -> bool {
        !matches!(
            self,
            Self::StillBenign
                | Self::Now
                | Self::Fine
                | Self::Able
                | Self::Alternative
                | Self::Demand
                | Self::Accusation
                | Self::Plea
                | Self::ProductQuestion
                | Self::ServiceFailure
                | Self::Approval
                | Self::SarcasmCue
                | Self::HumanVerb
                | Self::HumanNoun
                | Self::Failure
                | Self::NothingFound
                | Self::Deflection
                | Self::Instruction
                | Self::Offer
                | Self::AsksTrouble
                | Self::EmptyAnswer
                | Self::NegationBehind
                | Self::Lookalike
                | Self::HumanWork
                | Self::TransferEvent
                | Self::Negated
        )
    }

    /// Whether English needs it.
    pub(super) const fn is_needed_in_english(self) -> bool {
        !matches!(self, Self::NegationBehind | Self::Lookalike | Self::Negated)
    }

    /// Whether the group means what it says inside of a fixed phrase, too: "no thanks" still begins with a "no".
    pub(crate) const fn stands_in_idioms(self) -> bool {
        matches!(self, Self::Close | Self::Sarcasm | Self::PlainNo | Self::PlainYes)
    }

    /// Whether the group changes what the phrases beside it mean.
    pub(crate) const fn acts_on_neighbours(self) -> bool {
        matches!(self, Self::Negation | Self::NegationBehind | Self::Conditional)
    }

    /// Whether the group speaks for the agent's success; such words count only where they are really the
    /// customer's own, new and meant.
    pub(crate) const fn is_favourable(self) -> bool {
        matches!(
            self,
            Self::Thanks
                | Self::Close
                | Self::Praise
                | Self::Approval
                | Self::Confirmation
                | Self::Outcome
                | Self::Acknowledge
        )
    }
}
