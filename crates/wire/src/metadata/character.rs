//! Kinds of characters in YAML 1.1 text.

/// Ends a line.
pub(super) const fn is_line_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// May stand in the text as it is. The byte order mark, controls and non-characters may not.
pub(super) const fn is_allowed(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | '\u{85}' | '\u{10000}'..) || is_printable(c)
}

/// Is written as it is by the original, which escapes everything beyond U+FFFF.
pub(super) const fn is_printable(c: char) -> bool {
    matches!(
        c,
        ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}'
    )
}
