//! The legal states of one GPU.
