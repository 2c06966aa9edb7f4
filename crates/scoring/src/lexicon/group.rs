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
    Rejection = "rejection",
    Trouble = "trouble",
    Still = "still",
    StillBenign = "still_benign",
    Frustration = "frustration",
    Disagree = "disagree",
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
    Done = "done",
    Failure = "failure",
    NothingFound = "nothing_found",
    Deflection = "deflection",
    Instruction = "instruction",
    TransferPromise = "transfer_promise",
    TransferOffer = "transfer_offer",
    Injection = "injection",
    HumanWork = "human_work",
    TransferEvent = "transfer_event",
}

impl Group {
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
