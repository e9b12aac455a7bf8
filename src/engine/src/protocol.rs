//! What the main process and its workers say to each other: one request, one answer, each a frame of four
//! bytes of length (little endian) and that much JSON. The two ends are the same program, so there is no
//! version.

use crate::error::Failure;
use migd_core::{
    id::{PciAddress, PciId},
    node::{Driver, Gpu, MigMode},
    plan::Action,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::io;

/// The largest frame that is read: a GPU with all its profiles and instances takes some 20 kB.
pub(crate) const MOST_BYTES: u32 = 4 << 20;

/// The hidden first argument of a worker.
pub(crate) const WORKER_ARGUMENT: &str = "--migd-worker";
/// The second one of the scout, in place of a PCI address.
pub(crate) const SCOUT_ARGUMENT: &str = "scout";

/// To a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Request {
    /// To the scout: how many GPUs are there, and whose driver?
    Count,
    /// To the scout: what is at this index?
    Look {
        /// NVML's index.
        index: u32,
    },
    /// Read the whole GPU. What the scout knows of it need not be asked again.
    Read {
        /// NVML's index.
        index: u32,
        /// Its ids.
        pci_id: PciId,
        /// The driver.
        driver: Driver,
    },
    /// Read the mode alone.
    Mode,
    /// Carry out one action, other than [`Action::ResetIfPending`]. A GPU has been read before.
    Do(Action),
}

/// From a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Response {
    /// To `Count`.
    Counted {
        /// The driver.
        driver: Driver,
        /// GPUs there are, lost ones included.
        count: u32,
    },
    /// To `Look`: where it sits and what it is.
    Found(PciAddress, PciId),
    /// To `Read`.
    Read(Box<Gpu>),
    /// To `Mode`; absent without MIG.
    Mode(Option<MigMode>),
    /// To `Do` of a mode: the call succeeded, with this activation status, and this is read back.
    ModeSet {
        /// An nvmlReturn_t.
        activation: u32,
        /// The modes now; absent if they could not be read.
        mode: Option<MigMode>,
    },
    /// To `Do` of anything else: done, and what came of it checked.
    Done,
    /// To anything.
    Failed(Failure),
}

/// A message as a frame.
pub(crate) fn to_frame<T: Serialize>(message: &T) -> io::Result<Vec<u8>> {
    let mut frame = vec![0; 4];
    serde_json::to_writer(&mut frame, message)?;
    let length = u32::try_from(frame.len() - 4).ok().filter(|length| *length <= MOST_BYTES);
    let length = length.ok_or_else(|| io::Error::other("a message that is too long to send"))?;
    for (byte, of_length) in frame.iter_mut().zip(length.to_le_bytes()) {
        *byte = of_length;
    }
    Ok(frame)
}

/// The length that a frame's head announces, if it is bearable.
pub(crate) fn length_of(head: [u8; 4]) -> io::Result<usize> {
    let length = u32::from_le_bytes(head);
    if length > MOST_BYTES {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a frame of {length} bytes")));
    }
    Ok(length as usize)
}

/// A frame's body as a message.
pub(crate) fn of_body<T: DeserializeOwned>(body: &[u8]) -> io::Result<T> {
    Ok(serde_json::from_slice(body)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_round_trip() {
        let request = Request::Do(Action::SetMode { enabled: true });
        let frame = to_frame(&request).unwrap();
        let length = length_of(frame[..4].try_into().unwrap()).unwrap();
        assert_eq!(length, frame.len() - 4);
        assert_eq!(of_body::<Request>(&frame[4..]).unwrap(), request);
    }

    #[test]
    fn refuses_a_frame_that_would_eat_the_memory() {
        assert!(length_of(u32::MAX.to_le_bytes()).is_err());
        assert!(length_of(MOST_BYTES.to_le_bytes()).is_ok());
    }
}
