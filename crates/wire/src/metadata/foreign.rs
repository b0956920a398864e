//! Which plain texts a YAML 1.1 reader takes for something else than a text.
//!
//! Such a text is written in double quotes, so that a version stays `"1"` and a date stays the
//! characters that were published.

/// True if plain `text` would be read as a null, a truth value, a number or a time.
pub(super) fn reads_as_other_kind(text: &str) -> bool {
    is_null(text)
        || is_truth_value(text)
        || is_special_float(text)
        || is_number(text)
        || is_base_60(text)
        || is_time(text).is_some()
}

/// True for the plain words that stand for no value.
pub(super) fn is_null(text: &str) -> bool {
    matches!(text, "" | "~" | "null" | "Null" | "NULL")
}

/// True for the words of YAML 1.1 in lower, Capital and UPPER spelling.
fn is_truth_value(text: &str) -> bool {
    const WORDS: [&str; 8] = ["false", "n", "no", "off", "on", "true", "y", "yes"];
    let upper = text.bytes().all(|byte| byte.is_ascii_uppercase());
    let lower_after_first = text.bytes().skip(1).all(|byte| byte.is_ascii_lowercase());
    (upper || lower_after_first) && WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
}

fn is_special_float(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN")
}

fn is_number(text: &str) -> bool {
    if !text.starts_with(|c: char| matches!(c, '.' | '+' | '-') || c.is_ascii_digit()) {
        return false;
    }
    if text.starts_with('.') && !underscores_part_digits(text) {
        return false;
    }
    let plain = text.replace('_', "");
    is_float(&plain) || is_prefixed_integer(&plain)
}

fn underscores_part_digits(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_digit = |at: Option<usize>| {
        at.and_then(|at| bytes.get(at))
            .is_some_and(u8::is_ascii_digit)
    };
    text.match_indices('_')
        .all(|(at, _)| is_digit(at.checked_sub(1)) && is_digit(Some(at + 1)))
}

/// Decimal numbers, with or without a fraction, that fit a double.
fn is_float(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
    let mantissa_is_number = are_digits(whole)
        && (are_digits(fraction) || !whole.is_empty() && fraction.is_empty())
        || whole.is_empty() && are_digits(fraction);
    let exponent_is_number =
        exponent.is_none_or(|text| are_digits(text.strip_prefix(['+', '-']).unwrap_or(text)));
    mantissa_is_number
        && exponent_is_number
        && text.parse::<f64>().is_ok_and(|value| value.is_finite())
}

fn are_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Hexadecimal, octal and binary numbers that fit 64 bits.
fn is_prefixed_integer(text: &str) -> bool {
    let (sign, unsigned) = split_sign(text);
    let Some(rest) = unsigned.strip_prefix('0') else {
        return false;
    };
    let radix = match rest.bytes().next() {
        Some(b'x' | b'X') => 16,
        Some(b'o' | b'O') => 8,
        Some(b'b' | b'B') => 2,
        _ => return false,
    };
    // Lower-case octal and binary numbers may carry their sign after the prefix.
    match split_sign(&rest[1..]) {
        (Some(inner), digits) if sign.is_none() && rest.starts_with(['o', 'b']) => {
            fits_64_bits(Some(inner), digits, radix)
        }
        _ => fits_64_bits(sign, &rest[1..], radix),
    }
}

fn split_sign(text: &str) -> (Option<char>, &str) {
    let sign = text.chars().next().filter(|c| matches!(c, '+' | '-'));
    (sign, sign.map_or(text, |_| &text[1..]))
}

fn fits_64_bits(sign: Option<char>, digits: &str, radix: u32) -> bool {
    if !digits.starts_with(|c: char| c.is_digit(radix)) {
        return false;
    }
    let bound = match sign {
        None => u64::MAX,
        Some('-') => i64::MIN.unsigned_abs(),
        Some(_) => i64::MAX.unsigned_abs(),
    };
    u64::from_str_radix(digits, radix).is_ok_and(|magnitude| magnitude <= bound)
}

/// Numbers such as `12:30` and `190:20:30.15`.
fn is_base_60(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let Some((first, rest)) = unsigned.split_once(':') else {
        return false;
    };
    let digits_and_underscores = |text: &str| text.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    let (sixties, fraction) = rest.split_once('.').unwrap_or((rest, ""));
    first.starts_with(|c: char| c.is_ascii_digit())
        && digits_and_underscores(first)
        && digits_and_underscores(fraction)
        && sixties
            .split(':')
            .all(|part| matches!(part.as_bytes(), [b'0'..=b'9'] | [b'0'..=b'5', b'0'..=b'9']))
}

/// `Some` for dates, and for times in the forms `T…zone`, `t…zone` and space without a zone.
fn is_time(text: &str) -> Option<()> {
    let (year, rest) = text.split_at_checked(4)?;
    if !are_digits(year) {
        return None;
    }
    let rest = rest.strip_prefix('-')?;
    let (month, rest) = one_or_two_digits(rest)?;
    let (day, rest) = one_or_two_digits(rest.strip_prefix('-')?)?;
    let year = year.parse().ok()?;
    if !(1..=12).contains(&month) || !(1..=days_in_month(year, month)).contains(&day) {
        return None;
    }
    match rest.bytes().next() {
        None => Some(()),
        Some(b'T' | b't') => is_zone(clock_time(&rest[1..])?).then_some(()),
        Some(b' ') => clock_time(rest.trim_start_matches(' '))?
            .is_empty()
            .then_some(()),
        Some(_) => None,
    }
}

/// Skips `h:m:s` and a fraction.
fn clock_time(text: &str) -> Option<&str> {
    let (hour, rest) = one_or_two_digits(text)?;
    let (minute, rest) = one_or_two_digits(rest.strip_prefix(':')?)?;
    let (second, rest) = one_or_two_digits(rest.strip_prefix(':')?)?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let after_fraction = rest.strip_prefix(['.', ',']).map(|fraction| {
        (
            fraction,
            fraction.trim_start_matches(|c: char| c.is_ascii_digit()),
        )
    });
    match after_fraction {
        Some((fraction, after)) if fraction.len() > after.len() => Some(after),
        _ => Some(rest),
    }
}

fn is_zone(text: &str) -> bool {
    match text.as_bytes() {
        [b'Z'] => true,
        [b'+' | b'-', hours @ .., b':', m1, m2] => {
            hours.len() == 2
                && hours.iter().chain([m1, m2]).all(u8::is_ascii_digit)
                && hours <= b"24".as_slice()
                && [*m1, *m2] <= *b"60"
        }
        _ => false,
    }
}

fn one_or_two_digits(text: &str) -> Option<(u32, &str)> {
    let digits = text.bytes().take(2).take_while(u8::is_ascii_digit).count();
    let (number, rest) = text.split_at(digits);
    Some((number.parse().ok()?, rest))
}

const fn days_in_month(year: u32, month: u32) -> u32 {
    match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => {
            29
        }
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}
