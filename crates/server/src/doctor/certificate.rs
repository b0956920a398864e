//! The certificate: readable, of one pair with its key, valid today, for the names in use.

use std::path::PathBuf;

use gate::Certificate;
use jiff::{SignedDuration, Timestamp};
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::parse_x509_certificate;

use super::Surroundings;
use super::finding::Finding;
use crate::config::Settings;

const SUBJECT: &str = "certificate";

/// Renewals that run every month still come in time.
const DAYS_LEFT_MIN: i64 = 30;

/// Names that only this machine understands.
const LOCAL_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Where the pair lies, and whether the server made it.
struct Pair {
    chain: PathBuf,
    key: PathBuf,
    is_own: bool,
}

impl Pair {
    fn of(settings: &Settings) -> Self {
        match (&settings.certificate, &settings.certificate_key) {
            (Some(chain), Some(key)) => Self {
                chain: chain.clone(),
                key: key.clone(),
                is_own: false,
            },
            _ => Self {
                chain: settings.private_dir().join("cert.pem"),
                key: settings.private_dir().join("key.pem"),
                is_own: true,
            },
        }
    }

    /// What puts a usable pair in its place.
    fn renewal(&self) -> String {
        let (chain, key) = (self.chain.display(), self.key.display());
        if self.is_own {
            format!("rm -f '{chain}' '{key}'   # the next start makes another pair")
        } else {
            format!("put the renewed chain, leaf first, into {chain} and its key into {key}")
        }
    }
}

pub(super) fn examine(around: &Surroundings<'_>, found: &mut Vec<Finding>) {
    let pair = Pair::of(around.settings);
    if pair.is_own && !pair.chain.exists() && !pair.key.exists() {
        found.push(Finding::ok(SUBJECT, "none yet; the first start makes one"));
        return;
    }
    let leaf = match Certificate::load(&pair.chain, &pair.key) {
        Ok(certificate) => certificate.leaf(),
        Err(error) => {
            let what = format!("{:#}", anyhow::Error::new(error));
            found.push(Finding::bad(SUBJECT, what, pair.renewal()));
            return;
        }
    };
    match parse_x509_certificate(&leaf) {
        Ok((_, read)) => found.push(judge(&read, &pair, around)),
        Err(error) => {
            let what = format!("{} can't be taken apart: {error}", pair.chain.display());
            found.push(Finding::warn(SUBJECT, what, pair.renewal()));
        }
    }
}

fn judge(read: &X509Certificate<'_>, pair: &Pair, around: &Surroundings<'_>) -> Finding {
    let second = |time: x509_parser::time::ASN1Time| {
        Timestamp::from_second(time.timestamp()).unwrap_or(Timestamp::MAX)
    };
    let begins = second(read.validity().not_before);
    let ends = second(read.validity().not_after);
    if around.now >= ends {
        let what = format!("it ended at {ends}: no client that checks it connects");
        return Finding::bad(SUBJECT, what, pair.renewal());
    }
    if around.now < begins {
        let what = format!("it begins at {begins}: until then no client that checks it connects");
        return Finding::bad(
            SUBJECT,
            what,
            "timedatectl set-ntp true   # if the clock is wrong",
        );
    }
    let names = names(read);
    let shown = names.join(", ");
    let is_local = names
        .iter()
        .all(|name| LOCAL_NAMES.contains(&name.as_str()));
    if names.is_empty() {
        let what = "it names no host: no client that checks it connects";
        return Finding::bad(SUBJECT, what, pair.renewal());
    }
    if is_local && !around.settings.mark.ip().is_loopback() {
        let mark = around.settings.mark;
        let what = format!("it is for {shown} only, and others connect to {mark}");
        let mend = "set serve.certificate and serve.certificate_key to a pair for the public name";
        return Finding::warn(SUBJECT, what, mend);
    }
    let left = ends.duration_since(around.now);
    if left < SignedDuration::from_hours(DAYS_LEFT_MIN * 24) {
        let what = format!("it ends soon, at {ends}");
        return Finding::warn(SUBJECT, what, pair.renewal());
    }
    Finding::ok(SUBJECT, format!("for {shown}; ends at {ends}"))
}

fn names(read: &X509Certificate<'_>) -> Vec<String> {
    let Ok(Some(names)) = read.subject_alternative_name() else {
        return Vec::new();
    };
    let name = |name: &GeneralName<'_>| match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => address(bytes),
        _ => None,
    };
    names.value.general_names.iter().filter_map(name).collect()
}

fn address(bytes: &[u8]) -> Option<String> {
    if let Ok(v4) = <[u8; 4]>::try_from(bytes) {
        return Some(std::net::Ipv4Addr::from(v4).to_string());
    }
    let v6 = <[u8; 16]>::try_from(bytes).ok()?;
    Some(std::net::Ipv6Addr::from(v6).to_string())
}
