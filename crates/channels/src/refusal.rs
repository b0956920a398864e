//! Why a join or a publication is refused.

use thiserror::Error;

/// Why a join or a publication is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// The subscription was dropped while it was being decided.
    #[error("the subscription was dropped before it was decided")]
    Dropped,
    /// The node is leaving, or the socket was closed.
    #[error("this node takes no more subscriptions")]
    Leaving,
    /// All sockets of this node together follow as many topics as they may.
    #[error("this node follows as many topics as it may")]
    NodeTopics,
    /// The channel is not declared, its params are wrong, or the policy said no. It is one
    /// refusal, so that nobody learns from it what is declared (C18, C19).
    #[error("there is no such channel, its params are wrong, or you may not")]
    NotPermitted,
    /// This socket follows, awaits or was denied as many topics as it may.
    #[error("this socket follows as many topics as it may")]
    SocketTopics,
    /// Another subscription of the same topic is being decided on this socket.
    #[error("a subscription of this scope is being decided")]
    Taken,
    /// The policy could not decide.
    #[error("the policy could not decide")]
    Undecided,
    /// The channel does not declare this event.
    #[error("the channel has no such event")]
    UndeclaredEvent,
}

impl Refusal {
    /// The stable code on the wire.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Dropped => "dropped",
            Self::Leaving => "leaving",
            Self::NodeTopics | Self::SocketTopics => "subscription-limit",
            Self::NotPermitted => "not-permitted",
            Self::Taken => "subscription-taken",
            Self::Undecided => "policy-undecided",
            Self::UndeclaredEvent => "undeclared-event",
        }
    }

    /// What helps.
    pub const fn fix(self) -> &'static str {
        match self {
            Self::Dropped => "subscribe again if it is still wanted",
            Self::Leaving => "connect again",
            Self::NodeTopics => "try later, or raise [limits] channel_topics",
            Self::NotPermitted => "check the channel's name and params, and the caller's claims",
            Self::SocketTopics => "unsubscribe from topics that are no longer needed",
            Self::Taken => "wait for the answer to the first subscription",
            Self::Undecided => "try again",
            Self::UndeclaredEvent => "add the event to the channel's events",
        }
    }

    /// True if the same may succeed later without anybody changing anything.
    pub const fn is_worth_retrying(self) -> bool {
        matches!(self, Self::Leaving | Self::NodeTopics | Self::Undecided)
    }
}
