//! What is signed verifies; what is forged, stale or of another kind does not.

use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey};
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519};
use serde_json::json;

use super::*;

const SECRET: &[u8] = b"a secret of at least thirty-two bytes";
const NOW: i64 = 1_800_000_000;

fn now() -> Timestamp {
    Timestamp::from_second(NOW).unwrap()
}

fn secret() -> EncodingKey {
    EncodingKey::from_secret(SECRET).unwrap()
}

fn pair(algorithm: &'static rcgen::SignatureAlgorithm) -> (KeyPair, EncodingKey) {
    let pair = KeyPair::generate_for(algorithm).unwrap();
    let pem = pair.serialize_pem();
    let key = EncodingKey::from_ec_pem(pem.as_bytes())
        .or_else(|_| EncodingKey::from_ed_pem(pem.as_bytes()))
        .unwrap();
    (pair, key)
}

fn sign(algorithm: Algorithm, kid: Option<&str>, claims: &Value, key: &EncodingKey) -> String {
    let mut header = Header::new(algorithm);
    header.kid = kid.map(str::to_owned);
    jsonwebtoken::encode(&header, claims, key).unwrap()
}

fn hs256(claims: &Value) -> String {
    sign(Algorithm::HS256, None, claims, &secret())
}

fn verifier(keys: Keys) -> Verifier {
    Verifier::new(keys, Expected::default())
}

fn by_secret() -> Verifier {
    verifier(Keys::from_secret(SECRET).unwrap())
}

fn refused(verifier: &Verifier, token: &str) -> TokenError {
    verifier.verify(token, now()).unwrap_err()
}

fn claims() -> Value {
    json!({ "sub": "ada", "exp": NOW + 600, "rooms": [42] })
}

fn jwks(keys: &[(&str, Algorithm, &KeyPair)]) -> Vec<u8> {
    let keys: Vec<Jwk> = keys
        .iter()
        .map(|(kid, algorithm, pair)| {
            let pem = pair.public_key_pem();
            let key = DecodingKey::from_ec_pem(pem.as_bytes())
                .or_else(|_| DecodingKey::from_ed_pem(pem.as_bytes()))
                .unwrap();
            let mut jwk = Jwk::from_decoding_key(&key, Some(*algorithm)).unwrap();
            jwk.common.key_id = Some((*kid).to_owned());
            jwk
        })
        .collect();
    serde_json::to_vec(&json!({ "keys": keys })).unwrap()
}

#[test]
fn each_algorithm_signs_and_verifies() {
    install_crypto();
    let (ec, ec_key) = pair(&PKCS_ECDSA_P256_SHA256);
    let (ed, ed_key) = pair(&PKCS_ED25519);
    for (keys, algorithm, key) in [
        (Keys::from_secret(SECRET), Algorithm::HS256, secret()),
        (
            Keys::from_pem(ec.public_key_pem().as_bytes()),
            Algorithm::ES256,
            ec_key,
        ),
        (
            Keys::from_pem(ed.public_key_pem().as_bytes()),
            Algorithm::EdDSA,
            ed_key,
        ),
    ] {
        let verifier = verifier(keys.unwrap());
        let token = sign(algorithm, None, &claims(), &key);
        assert!(is_token_shaped(&token));
        let claims = verifier.verify(&token, now()).unwrap();
        assert_eq!(claims.subject(), Some("ada"));
        assert_eq!(claims.members()["rooms"], json!([42]));

        let (body, signature) = token.rsplit_once('.').unwrap();
        let other = if signature.starts_with('A') { "B" } else { "A" };
        let forged = format!("{body}.{other}{}", &signature[1..]);
        assert_eq!(refused(&verifier, &forged), TokenError::Signature);
        let stolen = hs256(&json!({ "sub": "eve", "exp": NOW + 600 }));
        let parts: Vec<&str> = stolen.split('.').collect();
        let (header, _) = body.split_once('.').unwrap();
        let swapped = format!("{header}.{}.{signature}", parts[1]);
        assert_eq!(refused(&verifier, &swapped), TokenError::Signature);
    }
}

#[test]
fn a_public_key_is_no_secret_and_no_algorithm_is_none() {
    let (ec, _) = pair(&PKCS_ECDSA_P256_SHA256);
    let pem = ec.public_key_pem();
    let verifier = verifier(Keys::from_pem(pem.as_bytes()).unwrap());
    let as_secret = EncodingKey::from_secret(pem.as_bytes()).unwrap();
    let confused = sign(Algorithm::HS256, None, &claims(), &as_secret);
    assert_eq!(refused(&verifier, &confused), TokenError::Algorithm);

    // {"alg":"none"}, {"alg":"None"} and no alg at all, each with and without a signature.
    for header in ["eyJhbGciOiJub25lIn0", "eyJhbGciOiJOb25lIn0", "e30"] {
        let token = hs256(&claims());
        let parts: Vec<&str> = token.split('.').collect();
        for signature in ["", parts[2]] {
            let token = format!("{header}.{}.{signature}", parts[1]);
            assert_eq!(refused(&verifier, &token), TokenError::Malformed, "{token}");
            assert_eq!(
                refused(&by_secret(), &token),
                TokenError::Malformed,
                "{token}"
            );
        }
    }
    let hs512 = sign(Algorithm::HS512, None, &claims(), &secret());
    assert_eq!(refused(&by_secret(), &hs512), TokenError::Algorithm);
}

#[test]
fn dates_are_held_to_the_clock_that_is_given() {
    let verifier = by_secret();
    let leeway = LEEWAY.as_secs();
    for (claims, outcome) in [
        (json!({ "exp": NOW - leeway + 1 }), None),
        (json!({ "exp": NOW - leeway }), Some(TokenError::Expired)),
        (json!({ "exp": NOW as f64 + 0.5 }), None),
        (json!({ "exp": 0 }), Some(TokenError::Expired)),
        (json!({ "exp": -1e300 }), Some(TokenError::Expired)),
        (json!({ "exp": i64::MAX }), None),
        (json!({ "exp": 1e300, "nbf": NOW + leeway }), None),
        (
            json!({ "exp": NOW + 9, "nbf": NOW + leeway + 1 }),
            Some(TokenError::NotYetValid),
        ),
        (
            json!({ "exp": NOW + 9, "nbf": "soon" }),
            Some(TokenError::Malformed),
        ),
        (json!({ "exp": "never" }), Some(TokenError::Malformed)),
        (json!({ "exp": null }), Some(TokenError::Malformed)),
        (json!({}), Some(TokenError::NoExpiry)),
    ] {
        let verified = verifier.verify(&hs256(&claims), now());
        assert_eq!(verified.err(), outcome, "{claims}");
    }
    let claims = verifier.verify(&hs256(&claims()), now()).unwrap();
    let end = Timestamp::from_second(NOW + 600 + leeway).unwrap();
    assert!(claims.is_expired(end) && !claims.is_expired(end - LEEWAY));
}

#[test]
fn audience_and_issuer_are_those_that_are_expected() {
    let expected = Expected {
        audience: Some("tidings".to_owned()),
        issuer: Some("https://id.example".to_owned()),
    };
    let verifier = Verifier::new(Keys::from_secret(SECRET).unwrap(), expected);
    let token = |audience: Value, issuer: Value| {
        hs256(&json!({ "exp": NOW + 9, "aud": audience, "iss": issuer }))
    };
    let issuer = json!("https://id.example");
    for audience in [json!("tidings"), json!(["mail", "tidings"])] {
        assert!(
            verifier
                .verify(&token(audience, issuer.clone()), now())
                .is_ok()
        );
    }
    for audience in [json!("mail"), json!([]), json!(null), json!(7)] {
        let token = token(audience, issuer.clone());
        assert_eq!(refused(&verifier, &token), TokenError::Audience);
    }
    let token = token(json!("tidings"), json!("https://evil.example"));
    assert_eq!(refused(&verifier, &token), TokenError::Issuer);
    assert!(by_secret().verify(&token, now()).is_ok());
}

#[test]
fn keys_are_found_by_their_id_and_rotate() {
    install_crypto();
    let (first_pair, first) = pair(&PKCS_ECDSA_P256_SHA256);
    let (second_pair, second) = pair(&PKCS_ED25519);
    let verifier = verifier(Keys::default());
    let old = sign(Algorithm::ES256, Some("1"), &claims(), &first);
    let new = sign(Algorithm::EdDSA, Some("2"), &claims(), &second);
    assert_eq!(refused(&verifier, &old), TokenError::UnknownKey);

    verifier.rotate(Keys::from_jwks(&jwks(&[("1", Algorithm::ES256, &first_pair)])).unwrap());
    assert!(verifier.verify(&old, now()).is_ok());
    assert_eq!(refused(&verifier, &new), TokenError::UnknownKey);

    let both = jwks(&[
        ("1", Algorithm::ES256, &first_pair),
        ("2", Algorithm::EdDSA, &second_pair),
    ]);
    verifier.rotate(Keys::from_jwks(&both).unwrap());
    assert!(verifier.verify(&old, now()).is_ok());
    assert!(verifier.verify(&new, now()).is_ok());
    let unnamed = sign(Algorithm::EdDSA, None, &claims(), &second);
    assert!(verifier.verify(&unnamed, now()).is_ok());
    let misnamed = sign(Algorithm::EdDSA, Some("1"), &claims(), &second);
    assert_eq!(refused(&verifier, &misnamed), TokenError::Algorithm);

    verifier.rotate(Keys::from_jwks(&jwks(&[("2", Algorithm::EdDSA, &second_pair)])).unwrap());
    assert_eq!(refused(&verifier, &old), TokenError::UnknownKey);
}

#[test]
fn keys_that_are_none_are_refused() {
    install_crypto();
    let (p384, _) = pair(&PKCS_ECDSA_P384_SHA384);
    let (ec, _) = pair(&PKCS_ECDSA_P256_SHA256);
    assert_eq!(Keys::from_secret(b"").unwrap_err(), KeyError::ShortSecret);
    assert_eq!(
        Keys::from_secret(&SECRET[..31]).unwrap_err(),
        KeyError::ShortSecret
    );
    for pem in [
        p384.public_key_pem(),
        ec.serialize_pem(),
        "-----BEGIN".to_owned(),
    ] {
        assert_eq!(
            Keys::from_pem(pem.as_bytes()).unwrap_err(),
            KeyError::Unreadable
        );
    }
    let other = jwks(&[("1", Algorithm::ES384, &p384)]);
    assert_eq!(Keys::from_jwks(&other).unwrap_err(), KeyError::NoneUsable);
    for document in ["", "[]", "{}", "{\"keys\":7}"] {
        let error = Keys::from_jwks(document.as_bytes()).unwrap_err();
        assert_eq!(error, KeyError::Unreadable, "{document}");
    }
    let many = json!({ "keys": vec![json!({}); KEYS_MAX + 1] }).to_string();
    assert_eq!(
        Keys::from_jwks(many.as_bytes()).unwrap_err(),
        KeyError::TooMany
    );
}

#[test]
fn a_text_that_is_no_token_is_refused() {
    let verifier = by_secret();
    for token in ["", "a.b", "a.b.c", "a.b.c.d", "..", "é.é.é", "e30.e30.e30"] {
        assert_eq!(refused(&verifier, token), TokenError::Malformed, "{token}");
    }
    let long = format!("{}.e30.", "a".repeat(TOKEN_LEN_MAX));
    assert_eq!(refused(&verifier, &long), TokenError::TooLong);
    let list = sign(Algorithm::HS256, None, &json!([1]), &secret());
    assert_eq!(refused(&verifier, &list), TokenError::Malformed);
    assert!(!is_token_shaped("abcdef") && !is_token_shaped("a.b c.d"));
}
