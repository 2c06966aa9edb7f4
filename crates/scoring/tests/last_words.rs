//! The customer's last words are understood, whatever was asked before them.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod support;

use assay_contracts::conversation::Conversation;

const ACTION: &str = "I have reset your password, please check your inbox.";
const ANYTHING_ELSE: &str = "Two bags are included. Is there anything else I can help you with?";
const DID_IT_HELP: &str = "Please restart the app. Did that help?";

const CONTENT: &[&str] = &["confirmed", "thanked", "closed", "accepted"];
const UNHAPPY: &[&str] = &["rejected", "gave_up", "repeated"];
const WANTS_HUMAN: &[&str] = &["asked_for_human"];
const OPEN: &[&str] = &["open"];

/// Answer, the customer's last words, the states in which they may end.
const CASES: &[(&str, &str, &[&str])] = &[
    (ACTION, "Thanks, works like a charm", CONTENT),
    (ACTION, "thx it's ok now", CONTENT),
    (ACTION, "Great, got it, thanks a lot", CONTENT),
    (ACTION, "awesome!!", CONTENT),
    (ACTION, "No luck, same error", UNHAPPY),
    (ACTION, "nope", UNHAPPY),
    (ACTION, "that isn't what I asked for", UNHAPPY),
    (ACTION, "It's still broken", UNHAPPY),
    (ACTION, "This is useless. You are not helping me.", UNHAPPY),
    (ACTION, "Can I please speak to someone real?", WANTS_HUMAN),
    (ACTION, "get me a human", WANTS_HUMAN),
    (ACTION, "I need a live agent now", WANTS_HUMAN),
    (ACTION, "Wow, amazing service, another wasted hour", UNHAPPY),
    (ACTION, "Thank you, but I never received the mail", UNHAPPY),
    (ACTION, "Thanks for not helping at all", UNHAPPY),
    (ACTION, "I can't log in, nothing works", UNHAPPY),
    (ACTION, "I did not receive any mail", UNHAPPY),
    (ACTION, "Where is the mail?", OPEN),
    (ACTION, "There is no mail in my inbox", UNHAPPY),
    (ACTION, "I already checked, nothing there", UNHAPPY),
    (ACTION, "not resolved", UNHAPPY),
    (ACTION, "Never mind", UNHAPPY),
    (ACTION, "forget it, you people are hopeless", UNHAPPY),
    (ACTION, "Unfortunately this does not solve my problem", UNHAPPY),
    (ACTION, "doesn't work", UNHAPPY),
    (ACTION, "It didn't help.", UNHAPPY),
    (ACTION, "Not helpful", UNHAPPY),
    (ACTION, "I am very unhappy with this", UNHAPPY),
    (ACTION, "Yes it works now, thanks for your help!", CONTENT),
    (ACTION, "ok thank you", CONTENT),
    (ACTION, "It is working again. Much appreciated", CONTENT),
    (ACTION, "Problem fixed.", CONTENT),
    (ACTION, "Couldn't be better, thank you", CONTENT),
    (ACTION, "That did not take long, thank you, all good", CONTENT),
    (ACTION, "I'd rather talk to your colleague", WANTS_HUMAN),
    (ACTION, "are you a bot?", OPEN),
    (ACTION, "hello???", OPEN),
    (ANYTHING_ELSE, "No", CONTENT),
    (ANYTHING_ELSE, "no that's all", CONTENT),
    (ANYTHING_ELSE, "Nope, I'm good", CONTENT),
    (ANYTHING_ELSE, "no thank you, have a nice day", CONTENT),
    (ANYTHING_ELSE, "No, that's wrong, it said three bags", UNHAPPY),
    (ANYTHING_ELSE, "No, not at the moment", CONTENT),
    (ANYTHING_ELSE, "nothing else", CONTENT),
    (ANYTHING_ELSE, "Yes, can I bring a bike?", OPEN),
    (DID_IT_HELP, "No", UNHAPPY),
    (DID_IT_HELP, "yes", CONTENT),
    (DID_IT_HELP, "Yes, it did", CONTENT),
    (DID_IT_HELP, "Not really", UNHAPPY),
    (DID_IT_HELP, "no it didn't", UNHAPPY),
    (DID_IT_HELP, "unfortunately not", UNHAPPY),
    (DID_IT_HELP, "It did, thanks", CONTENT),
    (ACTION, "brilliant, I'm back in. cheers!", CONTENT),
    (ACTION, "Yep that's done it", CONTENT),
    (ACTION, "Lovely, thanks ever so much", CONTENT),
    (ACTION, "All good on my end now", CONTENT),
    (ACTION, "Mail came through, I could sign in. Have a nice weekend", CONTENT),
    (ACTION, "ok, will do", CONTENT),
    (ACTION, "ty", CONTENT),
    (ACTION, "perfect 👍", CONTENT),
    (ACTION, "👍", CONTENT),
    (ACTION, "Nothing in my inbox so far", UNHAPPY),
    (ACTION, "The link in that mail has expired", UNHAPPY),
    (ACTION, "Your link leads to an error page", UNHAPPY),
    (ACTION, "I've been waiting three days for this, disgraceful", UNHAPPY),
    (ACTION, "You clearly did not read my message", UNHAPPY),
    (ACTION, "That's the third time you tell me this", UNHAPPY),
    (ACTION, "Nah, didn't do the trick", UNHAPPY),
    (ACTION, "cheers for wasting my afternoon", UNHAPPY),
    (ACTION, "Fantastic, now I'm locked out completely", UNHAPPY),
    (ACTION, "thanks a bunch, now it's worse than before", UNHAPPY),
    (ACTION, "how wonderful, another error", UNHAPPY),
    (ACTION, "I don't see how that helps", UNHAPPY),
    (ACTION, "that's not it", UNHAPPY),
    (ACTION, "It says invalid password again", UNHAPPY),
    (ACTION, "is there anybody human there?", WANTS_HUMAN),
    (ACTION, "let me talk to a human being", WANTS_HUMAN),
    (ACTION, "I demand to speak with a manager", WANTS_HUMAN),
    (ACTION, "Please hand this to a colleague of flesh and blood", WANTS_HUMAN),
    (ACTION, "Enough of this bot. Person please", WANTS_HUMAN),
    (ACTION, "Agent", WANTS_HUMAN),
    (ACTION, "ok but how do I change it afterwards?", OPEN),
    (ACTION, "Thanks! One more thing: can I change my name?", OPEN),
    (ACTION, "My user name is ann77", OPEN),
    (ANYTHING_ELSE, "no thx", CONTENT),
    (ANYTHING_ELSE, "Nah that's it for today", CONTENT),
    (ANYTHING_ELSE, "no. bye", CONTENT),
    (ANYTHING_ELSE, "No it's fine", CONTENT),
    (ANYTHING_ELSE, "That would be all", CONTENT),
    (ANYTHING_ELSE, "No you have not answered my question", UNHAPPY),
    (ANYTHING_ELSE, "no I asked about skis not bags", UNHAPPY),
    (DID_IT_HELP, "yup, solved", CONTENT),
    (DID_IT_HELP, "Nope, still the white screen", UNHAPPY),
    (DID_IT_HELP, "It did not", UNHAPPY),
    (DID_IT_HELP, "no change", UNHAPPY),
    (DID_IT_HELP, "Yes thank you so much", CONTENT),
    (DID_IT_HELP, "partly", OPEN),
];

fn conversation(answer: &str, last_words: &str) -> Conversation {
    let texts = [
        ("contact", "I cannot get into my account since yesterday."),
        ("ai", answer),
        ("contact", last_words),
    ];
    support::conversation(&texts)
}

#[test]
fn the_customers_last_words_decide_the_end_state() {
    let mut misread = Vec::new();
    for (answer, last_words, expected) in CASES {
        let end = support::scorer().features(&conversation(answer, last_words)).end;
        if !expected.contains(&end) {
            misread.push(format!("{last_words:?} after {answer:?} reads as {end}"));
        }
    }
    assert!(misread.is_empty(), "{misread:#?}");
}
