//! Acts: what a message does, the labels of the corpus (`corpus/PROTOCOL.md`).

/// What a message does. A message may do several things.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    // The customer …
    /// … asks, or states an issue or a wish.
    Ask,
    /// … gives information.
    Tell,
    /// … says or shows that the issue is solved.
    Confirm,
    /// … accepts an answer without saying that it solved the issue.
    Accept,
    /// … thanks.
    Thank,
    /// … is not convinced.
    Doubt,
    /// … rejects an answer.
    Reject,
    /// … says the same again.
    Repeat,
    /// … asks for a person.
    AskPerson,
    /// … gives up.
    GiveUp,
    /// … comes back after the issue seemed solved.
    Return,
    /// … writes off topic.
    OffTopic,
    /// … is ironic.
    Irony,
    // The agent or a human teammate …
    /// … answers fittingly.
    Answer,
    /// … answers beside the point, wrongly, or the same again.
    MissPoint,
    /// … asks for something.
    AskBack,
    /// … carries something out.
    CarryOut,
    /// … claims falsely that something was done.
    ClaimFalsely,
    /// … promises something.
    Promise,
    /// … refuses rightly, with a reason.
    Decline,
    /// … refuses without help.
    Refuse,
    /// … hands the conversation over to a person or team.
    HandOver,
    /// … apologises.
    Apologise,
    /// … greets, says goodbye, asks whether there is anything else.
    Close,
}

impl Act {
    /// Every act, in the order of the model's outputs.
    pub(crate) const ALL: [Self; 24] = [
        Self::Ask,
        Self::Tell,
        Self::Confirm,
        Self::Accept,
        Self::Thank,
        Self::Doubt,
        Self::Reject,
        Self::Repeat,
        Self::AskPerson,
        Self::GiveUp,
        Self::Return,
        Self::OffTopic,
        Self::Irony,
        Self::Answer,
        Self::MissPoint,
        Self::AskBack,
        Self::CarryOut,
        Self::ClaimFalsely,
        Self::Promise,
        Self::Decline,
        Self::Refuse,
        Self::HandOver,
        Self::Apologise,
        Self::Close,
    ];

    /// Acts of an unhappy customer.
    pub(crate) const COMPLAINTS: [Self; 6] =
        [Self::Reject, Self::Repeat, Self::AskPerson, Self::GiveUp, Self::Return, Self::Irony];

    /// Acts that show the customer's stance on the answers.
    pub(crate) const STANCES: [Self; 10] = [
        Self::Confirm,
        Self::Accept,
        Self::Thank,
        Self::Doubt,
        Self::Reject,
        Self::Repeat,
        Self::AskPerson,
        Self::GiveUp,
        Self::Return,
        Self::Irony,
    ];

    /// Whether it is an act of the customer; all others are of an AI agent or a human.
    pub(crate) const fn is_by_customer(self) -> bool {
        (self as usize) < Self::Answer as usize
    }

    /// Code of the signal under which evaluations report it.
    pub(crate) const fn code(self) -> &'static str {
        match self {
            Self::Ask => "CUSTOMER_ASKED",
            Self::Tell => "CUSTOMER_EXPLAINED",
            Self::Confirm => "CUSTOMER_CONFIRMED",
            Self::Accept => "CUSTOMER_ACCEPTED",
            Self::Thank => "CUSTOMER_THANKED",
            Self::Doubt => "CUSTOMER_DOUBTED",
            Self::Reject => "CUSTOMER_REJECTED",
            Self::Repeat => "CUSTOMER_REPEATED",
            Self::AskPerson => "HUMAN_REQUESTED",
            Self::GiveUp => "CUSTOMER_GAVE_UP",
            Self::Return => "REOPENED",
            Self::OffTopic => "OFF_TOPIC",
            Self::Irony => "CUSTOMER_SARCASTIC",
            Self::Answer => "AGENT_ANSWERED",
            Self::MissPoint => "AGENT_MISSED_THE_POINT",
            Self::AskBack => "AGENT_ASKED_BACK",
            Self::CarryOut => "ACTION_COMPLETED",
            Self::ClaimFalsely => "ACTION_CLAIMED",
            Self::Promise => "AGENT_PROMISED",
            Self::Decline => "AGENT_DECLINED",
            Self::Refuse => "AGENT_REFUSED",
            Self::HandOver => "AGENT_HANDED_OVER",
            Self::Apologise => "AGENT_APOLOGISED",
            Self::Close => "AGENT_CLOSED",
        }
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
