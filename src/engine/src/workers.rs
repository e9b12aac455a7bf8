//! All workers of a node, and the snapshot that they take together.

use crate::{
    error::{EngineError, Failure},
    join,
    process::Process,
    protocol::{Request, Response},
    scout::{self, Found},
    site::Site,
};
use migd_core::{
    id::{GpuUuid, PciAddress, PciId},
    node::{Driver, Gpu, Node, UnavailableGpu},
    reason::Reason,
};
use std::{collections::BTreeMap, time::Duration};
use tokio::process::Child;

/// The workers of one node: one process per GPU, started when first asked.
#[derive(Debug)]
pub struct Workers {
    site: Site,
    driver: Driver,
    found: Vec<Found>,
    gpus: BTreeMap<PciAddress, GpuWorker>,
}

/// The worker of one GPU and what is known of the GPU without asking.
#[derive(Debug)]
pub(crate) struct GpuWorker {
    pub(crate) process: Process,
    index: u32,
    pci_id: PciId,
    /// A reset that has not ended in its time: until it does, nobody of ours opens the GPU.
    pub(crate) being_reset: Option<Box<Child>>,
    /// Since it first answered: who it is even when it does not.
    uuid: Option<GpuUuid>,
}

impl Workers {
    /// Finds which GPUs there are. The scout that did it has gone when this returns.
    ///
    /// # Errors
    /// [`EngineError`] if nothing can be told of any GPU: no library (`driver-missing`), module not loaded
    /// (`driver-not-loaded`), versions differ (`driver-mismatch`), not allowed (`permission-denied`), hung or
    /// crashed (`worker-hung`, `worker-lost`).
    pub async fn open(site: Site) -> Result<Workers, EngineError> {
        let scouted = scout::look(&site).await?;
        let mut workers = Workers { site, driver: scouted.driver, found: Vec::new(), gpus: BTreeMap::new() };
        workers.know(scouted.found);
        Ok(workers)
    }

    /// Looks again which GPUs there are: after a change of mode or a reset, indexes may differ. What is known is
    /// kept while a reset has not ended, since the scout would open that GPU too.
    ///
    /// # Errors
    /// As [`Workers::open`].
    pub async fn scout_again(&mut self) -> Result<(), EngineError> {
        if self.gpus.values_mut().any(GpuWorker::still_being_reset) {
            return Ok(());
        }
        let scouted = scout::look(&self.site).await?;
        self.driver = scouted.driver;
        self.know(scouted.found);
        Ok(())
    }

    /// The driver, as the scout last saw it.
    pub fn driver(&self) -> &Driver {
        &self.driver
    }

    /// The whole node in one pass, all GPUs side by side. Never fails as a whole: a GPU that is lost, hangs or
    /// crashes its worker is in [`Node::unavailable`], and the others are not kept waiting past the limit.
    pub async fn snapshot(&mut self) -> Node {
        let mut node = Node { driver: self.driver.clone(), gpus: Vec::new(), unavailable: Vec::new() };
        for found in &self.found {
            let has_worker = || self.gpus.values().any(|worker| worker.index == found.index);
            if let Err(failure) = &found.gpu
                && !has_worker()
            {
                node.unavailable.push(UnavailableGpu {
                    index: found.index,
                    pci: None,
                    uuid: None,
                    reason: failure.reason,
                    message: failure.message.clone(),
                });
            }
        }
        let (site, driver) = (&self.site, &self.driver);
        let readings = join::all(self.gpus.iter_mut().map(|(pci, worker)| async move {
            worker.read(site, driver).await.map_err(|failure| UnavailableGpu {
                index: worker.index,
                pci: Some(*pci),
                uuid: worker.uuid.clone(),
                reason: failure.reason,
                message: failure.message,
            })
        }))
        .await;
        for reading in readings {
            match reading {
                Ok(gpu) => node.gpus.push(gpu),
                Err(unavailable) => node.unavailable.push(unavailable),
            }
        }
        node.gpus.sort_by_key(|gpu| gpu.index);
        node.unavailable.sort_by_key(|gpu| gpu.index);
        node
    }

    /// Lets all workers go and waits, within a bound, until they have.
    pub async fn close(mut self) {
        join::all(self.gpus.values_mut().map(|worker| worker.process.leave())).await;
    }

    /// The worker processes that run, by GPU: for people and tests.
    pub fn pids(&self) -> Vec<(PciAddress, u32)> {
        let pid = |(pci, worker): (&PciAddress, &GpuWorker)| worker.process.pid().map(|pid| (*pci, pid));
        self.gpus.iter().filter_map(pid).collect()
    }

    /// What working on the GPUs needs, borrowed apart.
    pub(crate) fn hands(&mut self) -> (&Site, &Driver, &mut BTreeMap<PciAddress, GpuWorker>) {
        (&self.site, &self.driver, &mut self.gpus)
    }

    fn know(&mut self, found: Vec<Found>) {
        let mut before = std::mem::take(&mut self.gpus);
        for found in &found {
            if let Ok((pci, pci_id)) = found.gpu {
                let mut worker = before.remove(&pci).unwrap_or_else(|| GpuWorker::new(pci, pci_id));
                worker.index = found.index;
                worker.pci_id = pci_id;
                self.gpus.insert(pci, worker);
            }
        }
        // What cannot be told now may be what was there before; its worker says what is the matter with it.
        for found in found.iter().filter(|found| found.gpu.is_err()) {
            let known = before.iter().find(|(_, worker)| worker.index == found.index).map(|(pci, _)| *pci);
            if let Some(worker) = known.and_then(|pci| before.remove_entry(&pci)) {
                self.gpus.extend([worker]);
            }
        }
        self.found = found;
    }
}

impl GpuWorker {
    fn new(pci: PciAddress, pci_id: PciId) -> GpuWorker {
        let process = Process::new(pci.to_string());
        GpuWorker { process, index: 0, pci_id, being_reset: None, uuid: None }
    }

    /// Reads the whole GPU.
    pub(crate) async fn read(&mut self, site: &Site, driver: &Driver) -> Result<Gpu, Failure> {
        let request = Request::Read { index: self.index, pci_id: self.pci_id, driver: driver.clone() };
        match self.ask(site, &request, site.read_limit).await {
            Ok(Response::Read(gpu)) => {
                self.uuid = Some(gpu.uuid.clone());
                Ok(*gpu)
            }
            Ok(other) => Err(odd(&other).failure()),
            Err(failure) => {
                // A session that was open when the GPU was reset, or the driver reloaded, does not recover: the
                // next reading begins with a new one. That it may not end at all is told then.
                drop(self.process.leave().await);
                Err(failure)
            }
        }
    }

    fn still_being_reset(&mut self) -> bool {
        let running = self.being_reset.as_mut().is_some_and(|tool| matches!(tool.try_wait(), Ok(None)));
        if !running {
            self.being_reset = None;
        }
        running
    }

    /// Asks anything; what the worker says of a failure is an error here.
    pub(crate) async fn ask(
        &mut self,
        site: &Site,
        request: &Request,
        limit: Duration,
    ) -> Result<Response, Failure> {
        if self.still_being_reset() {
            let text = "a reset of this GPU still runs; it is left alone until that has ended";
            return Err(Failure::new(Reason::ResetFailed, text));
        }
        match self.process.ask(site, request, limit).await {
            Ok(Response::Failed(failure)) => Err(failure),
            Ok(response) => Ok(response),
            Err(error) => Err(error.failure()),
        }
    }
}

pub(crate) fn odd(response: &Response) -> EngineError {
    let mut text = format!("{response:?}");
    text.truncate(text.char_indices().nth(80).map_or(text.len(), |(at, _)| at));
    EngineError::Protocol(text)
}
