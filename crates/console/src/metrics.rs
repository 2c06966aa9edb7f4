//! The console's metrics: `proto-docs/metrics.md`.

use metrics::{Counter, Unit, counter, describe_counter};

/// How an attempt to sign in ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SignInResult {
    Begun,
    /// An address or a key that is unknown, mistyped, used, expired or revoked.
    Refused,
    /// A key without the scope `console`.
    ScopeMissing,
    /// Too many attempts failed before.
    TooMany,
}

impl SignInResult {
    const ALL: [Self; 4] = [Self::Begun, Self::Refused, Self::ScopeMissing, Self::TooMany];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Begun => "begun",
            Self::Refused => "refused",
            Self::ScopeMissing => "scope_missing",
            Self::TooMany => "too_many",
        }
    }
}

pub(crate) fn count_sign_in(is_link: bool, result: SignInResult) {
    sign_ins(is_link, result).increment(1);
}

fn sign_ins(is_link: bool, result: SignInResult) -> Counter {
    let by = if is_link { "address" } else { "key" };
    counter!("assay_console_sign_ins_total", "by" => by, "result" => result.as_str())
}

/// Describes the metrics. Counters start at zero, so that the first increment is visible as an increase.
pub(crate) fn describe() {
    for result in SignInResult::ALL {
        for is_link in [true, false] {
            sign_ins(is_link, result).increment(0);
        }
    }
    describe_counter!(
        "assay_console_sign_ins_total",
        Unit::Count,
        "Attempts to sign in to the console, by credential and by how they ended"
    );
}
