//! How deep and how wide a JSON text is, before anything is built from it.

use crate::limits::{SYNC_DEPTH_MAX, SYNC_VALUES_MAX};

use super::FrameError;

/// Refuses a text that is nested too deep or has too many values. Whether it is JSON is left to
/// the parser; in a text that isn't, the counts mean nothing.
pub(super) fn check(text: &str) -> Result<(), FrameError> {
    let (mut depth, mut values) = (0_usize, 1_usize);
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => skip_string(&mut bytes),
            b'{' | b'[' => {
                depth += 1;
                values += 1;
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            // Each comma parts two values, or two members.
            b',' => values += 1,
            _ => {}
        }
        if depth > SYNC_DEPTH_MAX {
            return Err(FrameError::TooDeep);
        }
        if values > SYNC_VALUES_MAX {
            return Err(FrameError::TooManyValues);
        }
    }
    Ok(())
}

fn skip_string(bytes: &mut std::str::Bytes<'_>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return,
            b'\\' => _ = bytes.next(),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // C35
    #[test]
    fn depth_and_count_are_bounded_and_texts_do_not_count() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(check(&nested(SYNC_DEPTH_MAX)), Ok(()));
        assert_eq!(check(&nested(SYNC_DEPTH_MAX + 1)), Err(FrameError::TooDeep));
        let wide = |count: usize| format!("[{}0]", "0,".repeat(count));
        assert_eq!(check(&wide(SYNC_VALUES_MAX - 2)), Ok(()));
        assert_eq!(
            check(&wide(SYNC_VALUES_MAX)),
            Err(FrameError::TooManyValues)
        );
        let texts = format!(r#"["{}","\"[[[,,,"]"#, "[,".repeat(SYNC_VALUES_MAX));
        assert_eq!(check(&texts), Ok(()));
    }
}
