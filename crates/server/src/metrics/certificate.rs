//! When the certificate ends.

use std::fmt;

use gate::Certificate;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::gauge::ConstGauge;
use x509_parser::parse_x509_certificate;

/// The certificate in force.
#[derive(Debug)]
pub(crate) struct CertificateMetrics(pub(crate) Certificate);

impl Collector for CertificateMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let leaf = self.0.leaf();
        // TLS reads no dates of its own certificate, so one that this parser can't read is served.
        let Ok((_, read)) = parse_x509_certificate(&leaf) else {
            return Ok(());
        };
        let ends = ConstGauge::new(read.validity().not_after.timestamp());
        let encoder = encoder.encode_descriptor(
            "not_after_seconds",
            "When the certificate in force ends, in seconds since 1970.",
            None,
            ends.metric_type(),
        )?;
        ends.encode(encoder)
    }
}
