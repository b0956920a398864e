//! One thing that was looked at: how it is, and the command that mends it.

use std::fmt::Write;

use serde_json::json;

/// How a thing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// A server can't start, can't be reached or loses something.
    Bad,
    /// As it should be.
    Ok,
    /// It works, and somebody should know.
    Warn,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) level: Level,
    subject: &'static str,
    text: String,
    /// What to type, unless all is well.
    mend: Option<String>,
}

impl Finding {
    pub(super) fn ok(subject: &'static str, text: impl Into<String>) -> Self {
        Self {
            level: Level::Ok,
            subject,
            text: text.into(),
            mend: None,
        }
    }

    pub(super) fn warn(
        subject: &'static str,
        text: impl Into<String>,
        mend: impl Into<String>,
    ) -> Self {
        Self {
            level: Level::Warn,
            mend: Some(mend.into()),
            ..Self::ok(subject, text)
        }
    }

    pub(super) fn bad(
        subject: &'static str,
        text: impl Into<String>,
        mend: impl Into<String>,
    ) -> Self {
        Self {
            level: Level::Bad,
            ..Self::warn(subject, text, mend)
        }
    }
}

impl Level {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Bad => "BAD",
            Self::Ok => "OK",
            Self::Warn => "WARN",
        }
    }
}

/// A line for each finding, and one below it for what mends it.
pub(super) fn as_lines(findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings {
        let (level, subject) = (finding.level.as_str(), finding.subject);
        // Writing to a string can't fail.
        let _ = writeln!(text, "{level:<4}  {subject:<11}  {}", finding.text);
        if let Some(mend) = &finding.mend {
            let _ = writeln!(text, "{:19}mend: {mend}", "");
        }
    }
    text
}

/// One object with all findings.
pub(super) fn as_json(findings: &[Finding]) -> String {
    let each = findings.iter().map(|finding| {
        json!({
            "level": finding.level.as_str().to_lowercase(),
            "subject": finding.subject,
            "text": finding.text,
            "mend": finding.mend,
        })
    });
    let healthy = findings.iter().all(|finding| finding.level != Level::Bad);
    let all = json!({ "healthy": healthy, "findings": each.collect::<Vec<_>>() });
    format!("{all}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_how_it_is_and_the_next_one_what_mends_it() {
        let findings = [
            Finding::ok("clock", "plausible"),
            Finding::bad("ports", "taken", "kill 7"),
        ];
        assert_eq!(
            as_lines(&findings),
            "OK    clock        plausible\n\
             BAD   ports        taken\n                   mend: kill 7\n"
        );
        let json = as_json(&findings);
        assert!(json.contains("\"healthy\":false"), "{json}");
        assert!(json.contains("\"mend\":null"), "{json}");
    }
}
