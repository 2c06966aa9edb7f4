//! Most last messages of customers are classified correctly in the context of the answer before them.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stderr,
    reason = "a test fails by panicking and says what it measured"
)]

mod support;

use assay_contracts::evaluation::Evaluation;
use support::{conversation, fits_ending, scorer};

const ACTION: &str = "I have reset your password, please check your inbox.";
const ANYTHING_ELSE: &str = "Two bags are included. Is there anything else I can help you with?";
const DID_IT_HELP: &str = "Please restart the app. Did that help?";

/// Minimum share of correct cases.
const MIN_SHARE: f64 = 0.82;

/// Answer, the customer's last message, expected ending.
const CASES: &[(&str, &str, &str)] = &[
    (ACTION, "Thanks, works like a charm", "content"),
    (ACTION, "thx it's ok now", "content"),
    (ACTION, "Great, got it, thanks a lot", "content"),
    (ACTION, "awesome!!", "content"),
    (ACTION, "No luck, same error", "unhappy"),
    (ACTION, "nope", "unhappy"),
    (ACTION, "that isn't what I asked for", "unhappy"),
    (ACTION, "It's still broken", "unhappy"),
    (ACTION, "This is useless. You are not helping me.", "unhappy"),
    (ACTION, "Can I please speak to someone real?", "asked_for_human"),
    (ACTION, "get me a human", "asked_for_human"),
    (ACTION, "I need a live agent now", "asked_for_human"),
    (ACTION, "Wow, amazing service, another wasted hour", "unhappy"),
    (ACTION, "Thank you, but I never received the mail", "unhappy"),
    (ACTION, "Thanks for not helping at all", "unhappy"),
    (ACTION, "I can't log in, nothing works", "unhappy"),
    (ACTION, "I did not receive any mail", "unhappy"),
    (ACTION, "Where is the mail?", "open"),
    (ACTION, "There is no mail in my inbox", "unhappy"),
    (ACTION, "I already checked, nothing there", "unhappy"),
    (ACTION, "not resolved", "unhappy"),
    (ACTION, "Never mind", "unhappy"),
    (ACTION, "forget it, you people are hopeless", "unhappy"),
    (ACTION, "Unfortunately this does not solve my problem", "unhappy"),
    (ACTION, "doesn't work", "unhappy"),
    (ACTION, "It didn't help.", "unhappy"),
    (ACTION, "Not helpful", "unhappy"),
    (ACTION, "I am very unhappy with this", "unhappy"),
    (ACTION, "Yes it works now, thanks for your help!", "content"),
    (ACTION, "ok thank you", "content"),
    (ACTION, "It is working again. Much appreciated", "content"),
    (ACTION, "Problem fixed.", "content"),
    (ACTION, "Couldn't be better, thank you", "content"),
    (ACTION, "That did not take long, thank you, all good", "content"),
    (ACTION, "I'd rather talk to your colleague", "asked_for_human"),
    (ACTION, "are you a bot?", "open"),
    (ACTION, "hello???", "open"),
    (ANYTHING_ELSE, "No", "content"),
    (ANYTHING_ELSE, "no that's all", "content"),
    (ANYTHING_ELSE, "Nope, I'm good", "content"),
    (ANYTHING_ELSE, "no thank you, have a nice day", "content"),
    (ANYTHING_ELSE, "No, that's wrong, it said three bags", "unhappy"),
    (ANYTHING_ELSE, "No, not at the moment", "content"),
    (ANYTHING_ELSE, "nothing else", "content"),
    (ANYTHING_ELSE, "Yes, can I bring a bike?", "open"),
    (DID_IT_HELP, "No", "unhappy"),
    (DID_IT_HELP, "yes", "content"),
    (DID_IT_HELP, "Yes, it did", "content"),
    (DID_IT_HELP, "Not really", "unhappy"),
    (DID_IT_HELP, "no it didn't", "unhappy"),
    (DID_IT_HELP, "unfortunately not", "unhappy"),
    (DID_IT_HELP, "It did, thanks", "content"),
    (ACTION, "brilliant, I'm back in. cheers!", "content"),
    (ACTION, "Yep that's done it", "content"),
    (ACTION, "Lovely, thanks ever so much", "content"),
    (ACTION, "All good on my end now", "content"),
    (ACTION, "Mail came through, I could sign in. Have a nice weekend", "content"),
    (ACTION, "ok, will do", "content"),
    (ACTION, "ty", "content"),
    (ACTION, "perfect 👍", "content"),
    (ACTION, "👍", "content"),
    (ACTION, "Nothing in my inbox so far", "unhappy"),
    (ACTION, "The link in that mail has expired", "unhappy"),
    (ACTION, "Your link leads to an error page", "unhappy"),
    (ACTION, "I've been waiting three days for this, disgraceful", "unhappy"),
    (ACTION, "You clearly did not read my message", "unhappy"),
    (ACTION, "That's the third time you tell me this", "unhappy"),
    (ACTION, "Nah, didn't do the trick", "unhappy"),
    (ACTION, "cheers for wasting my afternoon", "unhappy"),
    (ACTION, "Fantastic, now I'm locked out completely", "unhappy"),
    (ACTION, "thanks a bunch, now it's worse than before", "unhappy"),
    (ACTION, "how wonderful, another error", "unhappy"),
    (ACTION, "I don't see how that helps", "unhappy"),
    (ACTION, "that's not it", "unhappy"),
    (ACTION, "It says invalid password again", "unhappy"),
    (ACTION, "is there anybody human there?", "asked_for_human"),
    (ACTION, "let me talk to a human being", "asked_for_human"),
    (ACTION, "I demand to speak with a manager", "asked_for_human"),
    (ACTION, "Please hand this to a colleague of flesh and blood", "asked_for_human"),
    (ACTION, "Enough of this bot. Person please", "asked_for_human"),
    (ACTION, "Agent", "asked_for_human"),
    (ACTION, "ok but how do I change it afterwards?", "open"),
    (ACTION, "Thanks! One more thing: can I change my name?", "open"),
    (ACTION, "My user name is ann77", "open"),
    (ANYTHING_ELSE, "no thx", "content"),
    (ANYTHING_ELSE, "Nah that's it for today", "content"),
    (ANYTHING_ELSE, "no. bye", "content"),
    (ANYTHING_ELSE, "No it's fine", "content"),
    (ANYTHING_ELSE, "That would be all", "content"),
    (ANYTHING_ELSE, "No you have not answered my question", "unhappy"),
    (ANYTHING_ELSE, "no I asked about skis not bags", "unhappy"),
    (DID_IT_HELP, "yup, solved", "content"),
    (DID_IT_HELP, "Nope, still the white screen", "unhappy"),
    (DID_IT_HELP, "It did not", "unhappy"),
    (DID_IT_HELP, "no change", "unhappy"),
    (DID_IT_HELP, "Yes thank you so much", "content"),
    (DID_IT_HELP, "partly", "open"),
];

fn evaluate(answer: &str, last_words: &str) -> Evaluation {
    let request = "I cannot get into my account since yesterday.";
    scorer().evaluate(&conversation(&[("contact", request), ("ai", answer), ("contact", last_words)]))
}

#[test]
fn most_last_messages_are_classified_correctly() {
    let misread: Vec<String> = CASES
        .iter()
        .filter(|(answer, last_words, ending)| !fits_ending(&evaluate(answer, last_words), ending))
        .map(|(answer, last_words, ending)| format!("{last_words:?} after {answer:?} is {ending}"))
        .collect();
    let share = 1.0 - misread.len() as f64 / CASES.len() as f64;
    eprintln!("{share:.3} of {} understood; not: {misread:#?}", CASES.len());
    assert!(share >= MIN_SHARE, "{share:.3} < {MIN_SHARE}");
}
