//! What is noted of a key, as JSON in a record of the journal.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use wire::ContentHash;

use super::Digest;

/// An answer as it is given again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Kept {
    pub(crate) status: u16,
    /// Header fields beyond those that every answer has.
    pub(crate) fields: Vec<(String, String)>,
    /// The body, which is JSON.
    pub(crate) body: String,
}

/// One note.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "lowercase")]
pub(super) enum Record {
    /// A key is taken and its write about to begin.
    Reserve {
        #[serde(with = "hex")]
        id: Digest,
        #[serde(with = "hex")]
        input: Digest,
        /// Milliseconds since 1970.
        at: i64,
        intent: serde_json::Value,
    },
    /// The write was answered so.
    Keep {
        #[serde(with = "hex")]
        id: Digest,
        kept: Kept,
    },
    /// The write was not done, and the key may be used afresh.
    Free {
        #[serde(with = "hex")]
        id: Digest,
    },
    /// Nobody can tell what became of the write.
    Lose {
        #[serde(with = "hex")]
        id: Digest,
    },
}

impl Record {
    pub(super) const fn id(&self) -> Digest {
        match self {
            Self::Reserve { id, .. }
            | Self::Keep { id, .. }
            | Self::Free { id }
            | Self::Lose { id } => *id,
        }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a record has no keys but texts")
    }

    pub(super) fn decode(payload: &[u8]) -> Option<Self> {
        serde_json::from_slice(payload).ok()
    }
}

mod hex {
    use super::{ContentHash, Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(
        hash: &ContentHash,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hash.hex())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<ContentHash, D::Error> {
        let text = String::deserialize(deserializer)?;
        ContentHash::parse_hex(&text).map_err(serde::de::Error::custom)
    }
}
