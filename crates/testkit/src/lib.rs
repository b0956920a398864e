//! What the tests share: clock, crashing storage, lossy network, the silence checker.
