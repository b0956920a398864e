//! What expressions allow, and what is no expression.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

fn allows(text: &str) -> bool {
    let claims = object(json!({
        "sub": "ada",
        "rooms": [42, "lobby"],
        "team": { "id": 7 },
        "scope": "read write:all",
        "admin": "yes",
        "age": 17.5,
        "https://a/b": true,
    }));
    let params = object(json!({ "id": 42, "name": "lobby" }));
    Expression::parse(text).unwrap().allows(&claims, &params)
}

#[test]
fn what_holds_allows() {
    for text in [
        "true",
        "claims.rooms contains params.id",
        "claims.rooms contains 42.0 and claims.rooms contains params.name",
        "claims.sub != null",
        "claims.team.id == 7",
        "claims[\"team\"]['id'] >= 7 and claims.team.id < 8",
        "claims.scope contains 'read'",
        "claims.team contains 'id'",
        "claims[\"https://a/b\"]",
        "claims.sub < 'adb'",
        "false or not (claims.sub == 'bob') and true",
        "not claims.banned",
        "not (claims.banned_rooms contains params.id)",
        "claims.nothing.at.all == null",
        "'it\\'s' == \"it's\"",
        "(claims.age < 18) == true",
    ] {
        assert!(allows(text), "{text}");
    }
}

#[test]
fn what_is_false_or_makes_no_sense_allows_nothing_and_neither_does_its_negation() {
    for text in [
        "null",
        "false",
        "claims.sub == null",
        "claims.rooms contains '42'",
    ] {
        assert!(!allows(text), "{text}");
        assert!(allows(&format!("not ({text})")), "{text}");
    }
    for text in [
        "claims.admin",
        "1",
        "'true'",
        "claims.rooms < 7",
        "claims.missing < 18",
        "claims.age contains 1",
        "claims.rooms contains (1 < 'a')",
        "(1 < 'a') == null",
        "claims.admin and true",
        "claims.admin or false",
    ] {
        assert!(!allows(text), "{text}");
        assert!(!allows(&format!("not ({text})")), "{text}");
    }
    assert!(allows("claims.admin or true"));
    assert!(!allows("not (claims.admin and true)"));
}

#[test]
fn a_part_of_a_word_does_not_count() {
    assert!(!allows("claims.scope contains 'write'"));
    assert!(!allows("claims.scope contains ''"));
    assert!(!allows("claims.sub contains 'a'"));
}

// C18
#[test]
fn names_of_other_languages_objects_are_plain_members() {
    for name in ["__proto__", "constructor", "toString"] {
        assert!(!allows(&format!("claims.{name} != null")), "{name}");
    }
}

#[test]
fn large_whole_numbers_are_compared_exactly() {
    assert!(!allows("9007199254740993 == 9007199254740992"));
    assert!(allows("18446744073709551615 > -9223372036854775808"));
}

#[test]
fn a_text_that_is_no_expression_is_refused_at_its_place() {
    use ExpressionFault as Fault;
    let deep = format!("{}true{}", "(".repeat(33), ")".repeat(33));
    let nots = "not ".repeat(33) + "true";
    for (text, at, fault) in [
        ("", 0, Fault::Value),
        ("claims", 6, Fault::Member),
        ("claims.", 7, Fault::Member),
        ("claims.1", 7, Fault::Member),
        ("claims[sub]", 7, Fault::Member),
        ("claims['sub'", 12, Fault::Member),
        ("claim.sub", 0, Fault::Root),
        ("(true", 5, Fault::Parenthesis),
        ("true)", 4, Fault::Trailing),
        ("true false", 5, Fault::Trailing),
        ("1 < 2 < 3", 6, Fault::Trailing),
        ("true and", 8, Fault::Value),
        ("and true", 0, Fault::Value),
        ("claims.team = 7", 12, Fault::Character),
        ("'open", 0, Fault::Text),
        ("'\\n'", 0, Fault::Text),
        ("1e400", 0, Fault::Number),
        ("01", 0, Fault::Number),
        ("claims.a == é", 12, Fault::Character),
        (&deep, 33, Fault::TooDeep),
        (&nots, 132, Fault::TooDeep),
        (&" ".repeat(EXPRESSION_LEN_MAX + 1), 0, Fault::TooLong),
    ] {
        assert_eq!(
            Expression::parse(text),
            Err(ExpressionError { at, fault }),
            "{text:?}"
        );
    }
}

#[test]
fn a_long_chain_is_not_deep() {
    let chain = vec!["true"; 400].join(" and ");
    assert!(allows(&chain));
}

#[test]
fn the_params_that_are_read_are_known() {
    let text = "claims.a == params.x or not (params['y'].z contains claims.params)";
    let expression = Expression::parse(text).unwrap();
    assert_eq!(expression.params().collect::<Vec<_>>(), ["x", "y"]);
}

proptest! {
    #[test]
    fn any_text_is_an_expression_or_refused(text in "[a-z0-9.()\\[\\]<>=!\"'\\\\ é-]{0,60}") {
        if let Ok(expression) = Expression::parse(&text) {
            expression.allows(&Map::new(), &Map::new());
        }
    }

    #[test]
    fn any_words_are_an_expression_or_refused(words in proptest::collection::vec(
        prop::sample::select(vec![
            "(", ")", "not", "and", "or", "contains", "==", "<", "claims.a", "params.b", "1",
            "'t'", "null", "true",
        ]),
        0..24,
    )) {
        if let Ok(expression) = Expression::parse(&words.join(" ")) {
            let members = object(json!({ "a": [1, "t", null], "b": "t" }));
            expression.allows(&members, &members);
        }
    }
}
