//! Acts: what a message does, the labels of the corpus (`corpus/PROTOCOL.md`).

/// Declares [`Act`]: the acts with their codes, in the order of the model's outputs.
macro_rules! acts {
    ($($(#[$documentation:meta])* $act:ident = $code:literal,)+) => {
        /// What a message does. A message may do several things.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Act {
            $($(#[$documentation])* $act,)+
        }

        impl Act {
            /// Every act, in the order of the model's outputs.
            pub(crate) const ALL: [Self; 24] = [$(Self::$act,)+];

            /// Code of the signal under which evaluations report it.
            pub(crate) const fn code(self) -> &'static str {
                match self {
                    $(Self::$act => $code,)+
                }
            }
        }
    };
}

acts! {
    // The customer …
    /// … asks, or states an issue or a wish.
    Ask = "CUSTOMER_ASKED",
    /// … gives information.
    Tell = "CUSTOMER_EXPLAINED",
    /// … says or shows that the issue is solved.
    Confirm = "CUSTOMER_CONFIRMED",
    /// … accepts an answer without saying that it solved the issue.
    Accept = "CUSTOMER_ACCEPTED",
    /// … thanks.
    Thank = "CUSTOMER_THANKED",
    /// … is not convinced.
    Doubt = "CUSTOMER_DOUBTED",
    /// … rejects an answer.
    Reject = "CUSTOMER_REJECTED",
    /// … says the same again.
    Repeat = "CUSTOMER_REPEATED",
    /// … asks for a human. In the corpus: `person`.
    RequestHuman = "HUMAN_REQUESTED",
    /// … gives up.
    GiveUp = "CUSTOMER_GAVE_UP",
    /// … comes back after the issue seemed solved.
    Return = "REOPENED",
    /// … writes off topic.
    OffTopic = "OFF_TOPIC",
    /// … is ironic.
    Irony = "CUSTOMER_SARCASTIC",
    // The agent or a human teammate …
    /// … answers fittingly.
    Answer = "AGENT_ANSWERED",
    /// … answers beside the point, wrongly, or the same again.
    MissPoint = "AGENT_MISSED_THE_POINT",
    /// … asks the customer for information. In the corpus: `askback`.
    RequestInformation = "AGENT_ASKED_BACK",
    /// … carries something out.
    CarryOut = "ACTION_COMPLETED",
    /// … claims that something was done, which is not so.
    ClaimFalsely = "ACTION_CLAIMED",
    /// … promises something.
    Promise = "AGENT_PROMISED",
    /// … refuses rightly, with a reason.
    DeclineWithReason = "AGENT_DECLINED",
    /// … refuses without help.
    RefuseToHelp = "AGENT_REFUSED",
    /// … hands the conversation over to a person or team.
    HandOver = "AGENT_HANDED_OVER",
    /// … apologises.
    Apologise = "AGENT_APOLOGISED",
    /// … greets, says goodbye, asks whether there is anything else.
    Close = "AGENT_CLOSED",
}

impl Act {
    /// Acts that show the customer's stance on the answers.
    pub(crate) const STANCES: &'static [Self] = &[
        Self::Confirm,
        Self::Accept,
        Self::Thank,
        Self::Doubt,
        Self::Reject,
        Self::Repeat,
        Self::RequestHuman,
        Self::GiveUp,
        Self::Return,
        Self::Irony,
    ];

    /// Acts of an unhappy customer: the stances from [`Self::Reject`] on.
    pub(crate) const COMPLAINTS: &'static [Self] = Self::STANCES.split_at(4).1;

    /// Whether it is an act of the customer; all others are of an AI agent or a human.
    pub(crate) const fn is_by_customer(self) -> bool {
        (self as usize) < Self::Answer as usize
    }
}

/// Minimum probability of an act that counts as present.
const LIKELY: f32 = 0.5;

/// Acts of one message: a probability for each act, in the order of [`Act::ALL`].
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct MessageActs([f32; Act::ALL.len()]);

impl MessageActs {
    /// From probabilities.
    pub(crate) const fn new(probabilities: [f32; Act::ALL.len()]) -> Self {
        Self(probabilities)
    }

    /// How probable it is that the message does this, 0–1.
    pub(crate) fn probability(&self, act: Act) -> f32 {
        self.0.get(act as usize).copied().unwrap_or(0.0)
    }

    /// Whether the message probably does this.
    pub(crate) fn has(&self, act: Act) -> bool {
        self.probability(act) >= LIKELY
    }

    /// Whether the message probably does any of these.
    pub(crate) fn has_any(&self, acts: &[Act]) -> bool {
        acts.iter().any(|act| self.has(*act))
    }

    /// Of these acts, the most probable one.
    pub(crate) fn strongest(&self, acts: &[Act]) -> Option<(Act, f32)> {
        acts.iter().map(|act| (*act, self.probability(*act))).max_by(|one, other| one.1.total_cmp(&other.1))
    }
}
