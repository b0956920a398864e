//! The server's certificate: loaded from PEM, made on the first run, read again on request.
//!
//! A reload swaps what the next handshake gets and touches no open connection; a file that can't
//! be read leaves the certificate in force. The one made here is a self-signed P-256 leaf and no
//! authority, so that a client trusts it by naming it as a root (`SSL_CERT_FILE`) or pins it, and
//! whoever steals its key can't sign other names with it. One made afresh at each start was
//! rejected: nobody could trust it for longer than a run.

use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use rcgen::{
    CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P256_SHA256, date_time_ymd,
};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use thiserror::Error;
use wire::ContentHash;

/// The names that the development certificate is for.
const DEVELOPMENT_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Long enough that a data directory never outlives its certificate unnoticed.
const DEVELOPMENT_YEARS: i16 = 10;

/// Only the owner may read a private key.
const KEY_MODE: u32 = 0o600;
const CERTIFICATE_MODE: u32 = 0o644;

/// A certificate and where it came from. A cheap handle: clones share it.
#[derive(Clone, Debug)]
pub struct Certificate(Arc<State>);

struct State {
    certificate_path: PathBuf,
    key_path: PathBuf,
    current: ArcSwap<CertifiedKey>,
    /// The private key as it was first read, for what is derived from it.
    seed: Vec<u8>,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate")
            .field("certificate_path", &self.certificate_path)
            .field("key_path", &self.key_path)
            .finish_non_exhaustive()
    }
}

impl Certificate {
    /// Reads a PEM chain, leaf first, and its key.
    pub fn load(certificate_path: &Path, key_path: &Path) -> Result<Self, CertificateError> {
        let current = read(certificate_path, key_path)?;
        let seed = fs::read(key_path)
            .map_err(|source| CertificateError::pem(key_path, pem::Error::Io(source)))?;
        Ok(Self(Arc::new(State {
            certificate_path: certificate_path.to_owned(),
            key_path: key_path.to_owned(),
            current: ArcSwap::from_pointee(current),
            seed,
        })))
    }

    /// Reads the development certificate, and makes it first where one of the files is missing.
    pub fn load_or_create(
        certificate_path: &Path,
        key_path: &Path,
        now: Timestamp,
    ) -> Result<Self, CertificateError> {
        if !certificate_path.exists() || !key_path.exists() {
            create(certificate_path, key_path, now)?;
        }
        Self::load(certificate_path, key_path)
    }

    /// Reads the files again; the next handshake gets what they hold. On an error the certificate
    /// in force stays.
    pub fn reload(&self) -> Result<(), CertificateError> {
        let fresh = read(&self.0.certificate_path, &self.0.key_path)?;
        self.0.current.store(Arc::new(fresh));
        Ok(())
    }

    /// A secret for `purpose` that is the same after a restart with the same private key. A reload
    /// doesn't change it.
    pub fn secret(&self, purpose: &str) -> [u8; 32] {
        let mut input = purpose.as_bytes().to_vec();
        input.push(0);
        input.extend_from_slice(&self.0.seed);
        *ContentHash::of(&input).as_bytes()
    }

    /// The leaf in DER form, as a client sees it.
    pub fn leaf(&self) -> CertificateDer<'static> {
        let current = self.0.current.load();
        current
            .cert
            .first()
            .cloned()
            .unwrap_or_else(|| CertificateDer::from(Vec::new()))
    }
}

impl ResolvesServerCert for Certificate {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.current.load_full())
    }
}

fn read(certificate_path: &Path, key_path: &Path) -> Result<CertifiedKey, CertificateError> {
    let chain = CertificateDer::pem_file_iter(certificate_path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|source| CertificateError::pem(certificate_path, source))?;
    if chain.is_empty() {
        return Err(CertificateError::Empty(certificate_path.to_owned()));
    }
    let key = PrivateKeyDer::from_pem_file(key_path)
        .map_err(|source| CertificateError::pem(key_path, source))?;
    CertifiedKey::from_der(chain, key, &aws_lc_rs::default_provider())
        .map_err(CertificateError::Unusable)
}

/// Writes both files under other names first, so that a crash leaves no half of a pair behind.
fn create(
    certificate_path: &Path,
    key_path: &Path,
    now: Timestamp,
) -> Result<(), CertificateError> {
    let (certificate, key) = self_signed(now).map_err(CertificateError::Making)?;
    replace(key_path, &key, KEY_MODE)?;
    replace(certificate_path, &certificate, CERTIFICATE_MODE)
}

fn self_signed(now: Timestamp) -> Result<(String, String), rcgen::Error> {
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let mut params = CertificateParams::new(DEVELOPMENT_NAMES.map(str::to_owned))?;
    params
        .distinguished_name
        .push(DnType::CommonName, "tidings development");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let midnight = |date: Date| {
        let (month, day) = (date.month().unsigned_abs(), date.day().unsigned_abs());
        date_time_ymd(date.year().into(), month, day)
    };
    let today = TimeZone::UTC.to_datetime(now).date();
    // A day of grace for a client whose clock lags.
    params.not_before = midnight(today.saturating_sub(1.day()));
    params.not_after = midnight(today.saturating_add(DEVELOPMENT_YEARS.years()));
    let certificate = params.self_signed(&key)?;
    Ok((certificate.pem(), key.serialize_pem()))
}

fn replace(path: &Path, text: &str, mode: u32) -> Result<(), CertificateError> {
    let failed = |source| CertificateError::Writing {
        path: path.to_owned(),
        source,
    };
    let fresh = path.with_extension("pem.new");
    // One left by a crash has a mode of its own.
    match fs::remove_file(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&fresh)
        .map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    file.sync_all().map_err(failed)?;
    fs::rename(&fresh, path).map_err(failed)
}

/// Why there is no certificate, or no fresh one.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CertificateError {
    /// The file has no certificate in it.
    #[error("{0} has no certificate")]
    Empty(PathBuf),
    /// The development certificate couldn't be made.
    #[error("make the development certificate")]
    Making(#[source] rcgen::Error),
    /// A file can't be read, or isn't PEM.
    #[error("read {path}")]
    Pem {
        /// Which file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: pem::Error,
    },
    /// Certificate and key don't belong together, or are of no use to TLS.
    #[error("use certificate and key")]
    Unusable(#[source] rustls::Error),
    /// A file can't be written.
    #[error("write {path}")]
    Writing {
        /// Which file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
}

impl CertificateError {
    fn pem(path: &Path, source: pem::Error) -> Self {
        Self::Pem {
            path: path.to_owned(),
            source,
        }
    }
}
