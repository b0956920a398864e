//! How a client command ends without success: the exit code, and what is said on stderr.

use std::fmt::{self, Display};
use std::io;
use std::process::ExitCode;

use client::{Error, Refusal, WatchError};
use wire::Status;

/// The exit codes that scripts may rely on. 0 is success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Code {
    /// The answer is no: not found, a conflict, refused.
    No = 1,
    /// The command line can't be used.
    Usage = 2,
    /// There is no answer.
    Unreachable = 3,
    /// A token is missing, or the one at hand doesn't suffice.
    Unauthorised = 4,
    /// A gap was told, and `--fail-on-gap` was given.
    Gap = 5,
}

/// An end without success.
#[derive(Debug)]
pub(crate) struct Failure {
    code: Code,
    text: String,
    /// What mends it.
    fix: Option<String>,
    /// The reader of stdout left, which is no failure at all.
    is_broken_pipe: bool,
}

impl Failure {
    fn new(code: Code, text: impl Display) -> Self {
        Self {
            code,
            text: text.to_string(),
            fix: None,
            is_broken_pipe: false,
        }
    }

    /// The answer is no.
    pub(crate) fn no(text: impl Display) -> Self {
        Self::new(Code::No, text)
    }

    /// The command line can't be used.
    pub(crate) fn usage(text: impl Display) -> Self {
        Self::new(Code::Usage, text)
    }

    /// There is no answer.
    pub(crate) fn unreachable(text: impl Display) -> Self {
        Self::new(Code::Unreachable, text)
    }

    /// A token is missing, or the one at hand doesn't suffice.
    pub(crate) fn unauthorised(text: impl Display) -> Self {
        Self::new(Code::Unauthorised, text)
    }

    /// A gap was told to somebody who takes none. The gap itself is on stdout.
    pub(crate) fn gap() -> Self {
        Self::new(Code::Gap, "changes were missed")
    }

    /// Adds what mends it.
    #[must_use]
    pub(crate) fn fix(mut self, fix: impl Display) -> Self {
        self.fix = Some(fix.to_string());
        self
    }

    /// Says what went wrong and gives the exit code.
    pub(crate) fn tell(&self) -> ExitCode {
        if self.is_broken_pipe {
            return ExitCode::SUCCESS;
        }
        eprintln!("tidings: {}", self.text);
        if let Some(fix) = &self.fix {
            eprintln!("  {fix}");
        }
        ExitCode::from(self.code as u8)
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self {
            is_broken_pipe: error.kind() == io::ErrorKind::BrokenPipe,
            ..Self::no(&error)
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        io::Error::from(error).into()
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let (code, fix) = match refusal.status {
            Status::Unauthorized => (
                Code::Unauthorised,
                "give a token with --token or TIDINGS_TOKEN; `tidings token add` makes one",
            ),
            Status::NotPermitted => (
                Code::Unauthorised,
                "the token does not cover this; `tidings token list` shows what each one covers",
            ),
            Status::Archived => (Code::No, "bring it back with `tidings archive --undo PATH`"),
            Status::RateLimited => (Code::No, "wait a moment and try again"),
            _ => return Self::no(refusal),
        };
        Self::new(code, refusal).fix(fix)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Refused(refusal) => refusal.into(),
            Error::Conflict {
                ref path, current, ..
            } => {
                let fix = if current == 0 {
                    "there is no such document; publish without --expect or with --expect 0"
                        .to_owned()
                } else {
                    format!(
                        "read it with `tidings fetch {path}`, put the two together and publish \
                         with --expect {current}"
                    )
                };
                Self::no(error).fix(fix)
            }
            Error::Request(_) => Self::usage(error),
            error => Self::new(Code::Unreachable, error),
        }
    }
}

impl From<WatchError> for Failure {
    fn from(error: WatchError) -> Self {
        match error {
            WatchError::Refused(refusal) => {
                let text = format!("watch refused: {refusal}");
                Self {
                    text,
                    ..Self::from(refusal)
                }
            }
            WatchError::Unreachable { .. } => Self::new(Code::Unreachable, error),
            error => Self::no(error),
        }
    }
}
