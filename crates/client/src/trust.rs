//! Whom to believe: the system's roots, a certificate pinned at the first meeting, or anyone.
//!
//! A certificate that the system's roots accept (`SSL_CERT_FILE` names others) is good. Otherwise
//! the first certificate a server shows is pinned, as with SSH: whoever stands between at the very
//! first meeting is believed, and everyone who steps between later is found out. A server that the
//! roots once vouched for is never pinned afterwards, since that would let anyone replace it.
//!
//! A pin stands for the certificate's bytes alone; names and dates in it aren't looked at, because
//! the development certificate of a server in a private network has neither to offer.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};
use thiserror::Error;
use wire::ContentHash;

use crate::address::ServerAddress;
use crate::known::{KnownServers, Proof};

/// Which certificates are accepted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Trust {
    /// Every one, unchecked: whoever answers is believed. For trials on one machine.
    Anyone,
    /// What the system's roots accept, else what the server showed at the first meeting.
    FirstUse(KnownServers),
    /// What the system's roots accept.
    Roots,
}

impl Trust {
    /// Checks the certificates of `server` by this trust, for a TLS client of another protocol.
    /// `on_first_use` hears of a certificate that is pinned, with its digest.
    pub fn verifier(
        self,
        server: ServerAddress,
        on_first_use: impl Fn(&ServerAddress, ContentHash) + Send + Sync + 'static,
    ) -> Arc<dyn ServerCertVerifier> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let roots = Arc::new(Roots::new(provider));
        Arc::new(Verifier::new(server, self, roots, Arc::new(on_first_use)))
    }
}

/// Why a server isn't believed.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum TrustError {
    /// The server shows another certificate than at the first meeting.
    #[error(
        "the certificate of {server} changed: {pinned} is known, {shown} was shown; if the server \
         was given a new one, remove its line from {}, else somebody may stand between",
        file.display()
    )]
    Changed {
        /// The server.
        server: ServerAddress,
        /// What it showed at the first meeting.
        pinned: ContentHash,
        /// What it shows.
        shown: ContentHash,
        /// Where the first meeting is written down.
        file: PathBuf,
    },
    /// The file of known servers can't be read or written.
    #[error(
        "the file of known servers {} can't be used ({error}); set TIDINGS_HOME to a directory \
         that can be written, or accept any certificate with --insecure",
        file.display()
    )]
    KnownServers {
        /// The file.
        file: PathBuf,
        /// What went wrong with it.
        error: Arc<io::Error>,
    },
    /// The system's roots vouched for the server before and don't any more.
    #[error(
        "the system's roots vouched for {server} before and don't vouch for the certificate it \
         shows ({reason}); if that is meant, remove its line from {}",
        file.display()
    )]
    Demoted {
        /// The server.
        server: ServerAddress,
        /// What the roots say of the certificate.
        reason: String,
        /// Where the earlier meeting is written down.
        file: PathBuf,
    },
    /// The system's roots don't vouch for the certificate.
    #[error("the certificate of {server} is not trusted ({reason}); SSL_CERT_FILE may name it")]
    Unknown {
        /// The server.
        server: ServerAddress,
        /// What the roots say of the certificate.
        reason: String,
    },
}

/// Called with a server and its certificate's digest when it is pinned.
pub(crate) type OnFirstUse = Arc<dyn Fn(&ServerAddress, ContentHash) + Send + Sync>;

/// Checks the certificate of one dial, and keeps the reason of a refusal for the dialler: what
/// comes out of the TLS library is text alone.
pub(crate) struct Verifier {
    server: ServerAddress,
    trust: Trust,
    roots: Arc<Roots>,
    provider: Arc<CryptoProvider>,
    on_first_use: OnFirstUse,
    refusal: Mutex<Option<Box<TrustError>>>,
}

impl Verifier {
    pub(crate) fn new(
        server: ServerAddress,
        trust: Trust,
        roots: Arc<Roots>,
        on_first_use: OnFirstUse,
    ) -> Self {
        Self {
            server,
            trust,
            provider: Arc::clone(&roots.provider),
            roots,
            on_first_use,
            refusal: Mutex::new(None),
        }
    }

    /// Why the certificate was refused, if it was.
    pub(crate) fn refusal(&self) -> Option<Box<TrustError>> {
        self.refusal
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn judge(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<(), Box<TrustError>> {
        let known = match &self.trust {
            Trust::Anyone => return Ok(()),
            Trust::Roots => None,
            Trust::FirstUse(known) => Some(known),
        };
        let shown = ContentHash::of(certificate);
        let proof = match known {
            Some(known) => known
                .proof(&self.server)
                .map_err(|error| unusable(known, error))?,
            None => None,
        };
        // Asked first: a pin that matches spares the reading of every root of the system.
        if proof == Some(Proof::Pinned(shown)) {
            return Ok(());
        }
        let vouched = self.roots.vouch(certificate, intermediates, name, now);
        match (known, vouched, proof) {
            (Some(known), Ok(()), None) => {
                self.note_roots(known);
                Ok(())
            }
            (_, Ok(()), _) => Ok(()),
            (None, Err(reason), _) => Err(Box::new(TrustError::Unknown {
                server: self.server.clone(),
                reason,
            })),
            (Some(known), Err(_), None) => self.pin(known, shown),
            (Some(known), Err(_), Some(Proof::Pinned(pinned))) => {
                Err(Box::new(TrustError::Changed {
                    server: self.server.clone(),
                    pinned,
                    shown,
                    file: known.file().to_owned(),
                }))
            }
            (Some(known), Err(reason), Some(Proof::Roots)) => Err(Box::new(TrustError::Demoted {
                server: self.server.clone(),
                reason,
                file: known.file().to_owned(),
            })),
        }
    }

    fn pin(&self, known: &KnownServers, shown: ContentHash) -> Result<(), Box<TrustError>> {
        known
            .remember(&self.server, Proof::Pinned(shown))
            .map_err(|error| unusable(known, error))?;
        (self.on_first_use)(&self.server, shown);
        Ok(())
    }

    /// Roots that `SSL_CERT_FILE` names are this run's alone, so they found no lasting claim. A
    /// file that can't be written only costs the protection against a later demotion.
    fn note_roots(&self, known: &KnownServers) {
        if std::env::var_os("SSL_CERT_FILE").is_none()
            && let Err(error) = known.remember(&self.server, Proof::Roots)
        {
            tracing::debug!(server = %self.server, %error, "known servers can't be written");
        }
    }
}

fn unusable(known: &KnownServers, error: io::Error) -> Box<TrustError> {
    Box::new(TrustError::KnownServers {
        file: known.file().to_owned(),
        error: Arc::new(error),
    })
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match self.judge(end_entity, intermediates, server_name, now) {
            Ok(()) => Ok(ServerCertVerified::assertion()),
            Err(refusal) => {
                let text = refusal.to_string();
                *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) = Some(refusal);
                Err(rustls::Error::General(text))
            }
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verifier")
            .field("server", &self.server)
            .field("trust", &self.trust)
            .finish_non_exhaustive()
    }
}

/// The system's roots, read when they are first needed.
#[derive(Debug)]
pub(crate) struct Roots {
    provider: Arc<CryptoProvider>,
    verifier: OnceLock<Result<rustls_platform_verifier::Verifier, rustls::Error>>,
}

impl Roots {
    pub(crate) fn new(provider: Arc<CryptoProvider>) -> Self {
        Self {
            provider,
            verifier: OnceLock::new(),
        }
    }

    /// The provider of the primitives, shared with the TLS configuration.
    pub(crate) const fn provider(&self) -> &Arc<CryptoProvider> {
        &self.provider
    }

    /// Asks the roots; the error is their reason in words. A system without roots vouches for none.
    fn vouch(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<(), String> {
        self.verifier
            .get_or_init(|| rustls_platform_verifier::Verifier::new(Arc::clone(&self.provider)))
            .as_ref()
            .map_err(ToString::to_string)?
            .verify_server_cert(certificate, intermediates, name, &[], now)
            .map(drop)
            .map_err(|error| error.to_string())
    }
}
