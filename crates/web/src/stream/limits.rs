//! The bounds of streams.

use std::time::Duration;

use crate::limits::LimitsError;

/// The bounds of what is held: SSE, NDJSON and WebSocket. `Default` is meant for production.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamLimits {
    /// Streams and sockets begun per second, before it is known who asks; beyond it a socket gets
    /// 503 and a stream a late `retry:`. 0 is off. A beginning costs about 0.2 ms of CPU, so this
    /// is a good part of two cores, and a herd of 50,000 over three nodes is back in ten seconds.
    pub accepts_per_second: u32,
    /// Streams and sockets that may begin at once after a pause.
    pub accepts_burst: u32,
    /// Frames of a socket per second; beyond it each is refused.
    pub frames_per_second: u32,
    /// Frames that a socket may send at once after a pause: a hello and a page's subscribes.
    pub frames_burst: u32,
    /// Every stream hears something at least this often. Below the idle limits of proxies.
    pub heartbeat: Duration,
    /// A socket's first frame comes within this time.
    pub hello_timeout: Duration,
    /// A socket of which nothing is heard for this long is closed.
    pub idle_timeout: Duration,
    /// A stream ends after this time at the latest, so that load can move; its client comes back.
    pub lifetime: Duration,
    /// The longest time between two frames that a watch may ask for.
    pub min_gap_max: Duration,
    /// Bytes that may wait for one socket beside the frame under way; beyond it it is closed.
    pub outbox_bytes: usize,
    /// Streams and sockets at once; beyond it a stream is refused for a while.
    pub streams: usize,
    /// Watches of one socket; beyond it a subscribe is refused.
    pub watches_per_socket: usize,
}

impl Default for StreamLimits {
    fn default() -> Self {
        Self {
            accepts_per_second: 2_500,
            accepts_burst: 5_000,
            frames_per_second: 64,
            frames_burst: 256,
            heartbeat: Duration::from_secs(15),
            hello_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(120),
            lifetime: Duration::from_secs(4 * 60 * 60),
            min_gap_max: Duration::from_secs(60),
            outbox_bytes: 64 << 10,
            streams: 60_000,
            watches_per_socket: 64,
        }
    }
}

impl StreamLimits {
    /// Refuses values that can't work, alone or together.
    pub(crate) fn check(&self) -> Result<(), LimitsError> {
        let positive = [
            ("accepts_burst", self.accepts_burst as usize),
            ("frames_burst", self.frames_burst as usize),
            ("outbox_bytes", self.outbox_bytes),
            ("streams", self.streams),
            ("watches_per_socket", self.watches_per_socket),
        ];
        if let Some((name, _)) = positive.iter().find(|(_, value)| *value == 0) {
            return Err(LimitsError::Zero(name));
        }
        let times = [
            ("heartbeat", self.heartbeat),
            ("hello_timeout", self.hello_timeout),
            ("idle_timeout", self.idle_timeout),
            ("lifetime", self.lifetime),
        ];
        if let Some((name, _)) = times.iter().find(|(_, value)| value.is_zero()) {
            return Err(LimitsError::Zero(name));
        }
        if self.heartbeat * 2 > self.idle_timeout || self.heartbeat > self.lifetime {
            return Err(LimitsError::Heartbeat);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // T56
    #[test]
    fn a_heartbeat_that_idle_sockets_can_not_answer_in_time_is_refused() {
        assert_eq!(StreamLimits::default().check(), Ok(()));
        let limits = StreamLimits {
            idle_timeout: Duration::from_secs(20),
            ..StreamLimits::default()
        };
        assert_eq!(limits.check(), Err(LimitsError::Heartbeat));
    }
}
