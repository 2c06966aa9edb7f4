//! The customer's last message is classified correctly in the context of the answer before it.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a test fails by panicking and says what it measured"
)]

mod support;

use assay_contracts::conversation::Conversation;
use assay_contracts::evaluation::{Evaluation, HandoffState, ResolutionStatus};

const ACTION: &str = "I have reset your password, please check your inbox.";
const ANYTHING_ELSE: &str = "Two bags are included. Is there anything else I can help you with?";
const DID_IT_HELP: &str = "Please restart the app. Did that help?";

/// Expected end of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Content,
    Unhappy,
    WantsHuman,
    Open,
}
use End::{Content, Open, Unhappy, WantsHuman};

/// Minimum share of correct cases.
const MIN_SHARE: f64 = 0.82;

/// Answer, the customer's last message, expected end.
const CASES: &[(&str, &str, End)] = &[
    (ACTION, "Thanks, works like a charm", Content),
    (ACTION, "thx it's ok now", Content),
    (ACTION, "Great, got it, thanks a lot", Content),
    (ACTION, "awesome!!", Content),
    (ACTION, "No luck, same error", Unhappy),
    (ACTION, "nope", Unhappy),
    (ACTION, "that isn't what I asked for", Unhappy),
    (ACTION, "It's still broken", Unhappy),
    (ACTION, "This is useless. You are not helping me.", Unhappy),
    (ACTION, "Can I please speak to someone real?", WantsHuman),
    (ACTION, "get me a human", WantsHuman),
    (ACTION, "I need a live agent now", WantsHuman),
    (ACTION, "Wow, amazing service, another wasted hour", Unhappy),
    (ACTION, "Thank you, but I never received the mail", Unhappy),
    (ACTION, "Thanks for not helping at all", Unhappy),
    (ACTION, "I can't log in, nothing works", Unhappy),
    (ACTION, "I did not receive any mail", Unhappy),
    (ACTION, "Where is the mail?", Open),
    (ACTION, "There is no mail in my inbox", Unhappy),
    (ACTION, "I already checked, nothing there", Unhappy),
    (ACTION, "not resolved", Unhappy),
    (ACTION, "Never mind", Unhappy),
    (ACTION, "forget it, you people are hopeless", Unhappy),
    (ACTION, "Unfortunately this does not solve my problem", Unhappy),
    (ACTION, "doesn't work", Unhappy),
    (ACTION, "It didn't help.", Unhappy),
    (ACTION, "Not helpful", Unhappy),
    (ACTION, "I am very unhappy with this", Unhappy),
    (ACTION, "Yes it works now, thanks for your help!", Content),
    (ACTION, "ok thank you", Content),
    (ACTION, "It is working again. Much appreciated", Content),
    (ACTION, "Problem fixed.", Content),
    (ACTION, "Couldn't be better, thank you", Content),
    (ACTION, "That did not take long, thank you, all good", Content),
    (ACTION, "I'd rather talk to your colleague", WantsHuman),
    (ACTION, "are you a bot?", Open),
    (ACTION, "hello???", Open),
    (ANYTHING_ELSE, "No", Content),
    (ANYTHING_ELSE, "no that's all", Content),
    (ANYTHING_ELSE, "Nope, I'm good", Content),
    (ANYTHING_ELSE, "no thank you, have a nice day", Content),
    (ANYTHING_ELSE, "No, that's wrong, it said three bags", Unhappy),
    (ANYTHING_ELSE, "No, not at the moment", Content),
    (ANYTHING_ELSE, "nothing else", Content),
    (ANYTHING_ELSE, "Yes, can I bring a bike?", Open),
    (DID_IT_HELP, "No", Unhappy),
    (DID_IT_HELP, "yes", Content),
    (DID_IT_HELP, "Yes, it did", Content),
    (DID_IT_HELP, "Not really", Unhappy),
    (DID_IT_HELP, "no it didn't", Unhappy),
    (DID_IT_HELP, "unfortunately not", Unhappy),
    (DID_IT_HELP, "It did, thanks", Content),
    (ACTION, "brilliant, I'm back in. cheers!", Content),
    (ACTION, "Yep that's done it", Content),
    (ACTION, "Lovely, thanks ever so much", Content),
    (ACTION, "All good on my end now", Content),
    (ACTION, "Mail came through, I could sign in. Have a nice weekend", Content),
    (ACTION, "ok, will do", Content),
    (ACTION, "ty", Content),
    (ACTION, "perfect 👍", Content),
    (ACTION, "👍", Content),
    (ACTION, "Nothing in my inbox so far", Unhappy),
    (ACTION, "The link in that mail has expired", Unhappy),
    (ACTION, "Your link leads to an error page", Unhappy),
    (ACTION, "I've been waiting three days for this, disgraceful", Unhappy),
    (ACTION, "You clearly did not read my message", Unhappy),
    (ACTION, "That's the third time you tell me this", Unhappy),
    (ACTION, "Nah, didn't do the trick", Unhappy),
    (ACTION, "cheers for wasting my afternoon", Unhappy),
    (ACTION, "Fantastic, now I'm locked out completely", Unhappy),
    (ACTION, "thanks a bunch, now it's worse than before", Unhappy),
    (ACTION, "how wonderful, another error", Unhappy),
    (ACTION, "I don't see how that helps", Unhappy),
    (ACTION, "that's not it", Unhappy),
    (ACTION, "It says invalid password again", Unhappy),
    (ACTION, "is there anybody human there?", WantsHuman),
    (ACTION, "let me talk to a human being", WantsHuman),
    (ACTION, "I demand to speak with a manager", WantsHuman),
    (ACTION, "Please hand this to a colleague of flesh and blood", WantsHuman),
    (ACTION, "Enough of this bot. Person please", WantsHuman),
    (ACTION, "Agent", WantsHuman),
    (ACTION, "ok but how do I change it afterwards?", Open),
    (ACTION, "Thanks! One more thing: can I change my name?", Open),
    (ACTION, "My user name is ann77", Open),
    (ANYTHING_ELSE, "no thx", Content),
    (ANYTHING_ELSE, "Nah that's it for today", Content),
    (ANYTHING_ELSE, "no. bye", Content),
    (ANYTHING_ELSE, "No it's fine", Content),
    (ANYTHING_ELSE, "That would be all", Content),
    (ANYTHING_ELSE, "No you have not answered my question", Unhappy),
    (ANYTHING_ELSE, "no I asked about skis not bags", Unhappy),
    (DID_IT_HELP, "yup, solved", Content),
    (DID_IT_HELP, "Nope, still the white screen", Unhappy),
    (DID_IT_HELP, "It did not", Unhappy),
    (DID_IT_HELP, "no change", Unhappy),
    (DID_IT_HELP, "Yes thank you so much", Content),
    (DID_IT_HELP, "partly", Open),
];

fn conversation(answer: &str, last_words: &str) -> Conversation {
    let texts = [
        ("contact", "I cannot get into my account since yesterday."),
        ("ai", answer),
        ("contact", last_words),
    ];
    support::conversation(&texts)
}

/// Whether an evaluation matches the end.
fn fits(evaluation: &Evaluation, end: End) -> bool {
    let status = evaluation.resolution.status;
    match end {
        Content => status != ResolutionStatus::NotResolved,
        Unhappy => status == ResolutionStatus::NotResolved,
        WantsHuman => evaluation.handoff.state == HandoffState::RequestedNotCompleted,
        Open => !evaluation.resolution.customer_confirmed,
    }
}

#[test]
fn last_messages_are_classified() {
    let misread: Vec<String> = CASES
        .iter()
        .filter(|(answer, last_words, end)| {
            !fits(&support::scorer().evaluate(&conversation(answer, last_words)), *end)
        })
        .map(|(answer, last_words, end)| format!("{last_words:?} after {answer:?} is {end:?}"))
        .collect();
    let share = 1.0 - misread.len() as f64 / CASES.len() as f64;
    eprintln!("{share:.3} of {} understood; not: {misread:#?}", CASES.len());
    assert!(share >= MIN_SHARE, "{share:.3} < {MIN_SHARE}");
}
