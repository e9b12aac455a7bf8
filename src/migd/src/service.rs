//! The service object: status, plan, apply.

use migd_core::{
    choose,
    diagnostic::{Diagnostic, Severity},
    document::Failure,
    explain::{self, Explained},
    layout::Library,
    node::{Gpu, Node},
    plan::{self, Plan, Policy},
    reason::Reason,
    target,
};
use migd_engine::{EngineError, Outcome, Progress, Site, Workers};

/// Answers for one node.
#[derive(Debug, Clone)]
pub struct Service {
    site: Site,
}

/// A plan and the node that it was made for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// The node as it was read.
    pub node: Node,
    /// What is to be done to it.
    pub plan: Plan,
}

/// What came of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The plan that was carried out.
    pub planned: Planned,
    /// The result, read back.
    pub outcome: Outcome,
}

impl Service {
    /// A service for the node behind this driver.
    pub fn new(site: Site) -> Service {
        Service { site }
    }

    /// Reads the whole node.
    ///
    /// # Errors
    /// If nothing can be told of any GPU: no driver, no right, no answer.
    pub async fn status(&self) -> Result<Node, Failure> {
        let mut workers = self.open().await?;
        let node = workers.snapshot().await;
        workers.close().await;
        Ok(node)
    }

    /// Whether and where an instance of a profile can be created on a GPU now; if nowhere, why, and what would
    /// help. Both are named as [`choose`] reads them. With the answer comes the GPU as it was read.
    ///
    /// # Errors
    /// As [`Service::status`], and for a GPU or a profile that is not there.
    pub async fn explain(&self, gpu: &str, profile: &str) -> Result<(Gpu, Explained), Failure> {
        let node = self.status().await?;
        let answer = || {
            let gpu = choose::gpu(&node, gpu)?;
            let profile = choose::profile(gpu, profile)?;
            Ok((gpu.clone(), explain::explain(gpu, &node.driver, profile)?))
        };
        answer().map_err(|fault| Failure::of(vec![fault]))
    }

    /// What applying a layout would do, to the whole node or `only` to the GPU that [`choose::gpu`] finds.
    ///
    /// # Errors
    /// All that is wrong with the file or stands in the way, at once; nothing was written.
    pub async fn plan(
        &self,
        library: &Library,
        layout: &str,
        only: Option<&str>,
    ) -> Result<Planned, Failure> {
        named(library, layout)?;
        let mut workers = self.open().await?;
        let planned = plan_on(&mut workers, library, layout, only).await;
        workers.close().await;
        planned
    }

    /// Makes the node, or `only` that GPU, what a layout says. `announce` is told the plan before the first write.
    ///
    /// # Errors
    /// As [`Service::plan`]; nothing was written then. What happens after the first write is in the outcome.
    pub async fn apply(
        &self,
        library: &Library,
        layout: &str,
        only: Option<&str>,
        announce: impl FnOnce(&Planned),
        progress: &Progress,
    ) -> Result<Applied, Failure> {
        named(library, layout)?;
        let mut workers = self.open().await?;
        let applied = match plan_on(&mut workers, library, layout, only).await {
            Ok(planned) => {
                if let Some(failure) = cannot_be_done(&planned.plan) {
                    workers.close().await;
                    return Err(failure);
                }
                announce(&planned);
                let outcome = migd_engine::apply(&planned.plan, &mut workers, progress).await;
                Ok(Applied { planned, outcome })
            }
            Err(failure) => Err(failure),
        };
        workers.close().await;
        applied
    }

    async fn open(&self) -> Result<Workers, Failure> {
        Workers::open(self.site.clone()).await.map_err(|error| told(&error))
    }
}

/// A name that no layout has is refused before any GPU is opened.
fn named(library: &Library, layout: &str) -> Result<(), Failure> {
    library.find(layout).map(|_| ()).map_err(Failure::of)
}

/// What a plan may show and nothing here can carry out: sharing.
fn cannot_be_done(plan: &Plan) -> Option<Failure> {
    let sharing = plan.notes.iter().filter(|note| note.reason == Reason::SharingUnavailable);
    let faults: Vec<Diagnostic> =
        sharing.map(|note| Diagnostic { severity: Severity::Error, ..note.clone() }).collect();
    (!faults.is_empty()).then(|| Failure::of(faults))
}

async fn plan_on(
    workers: &mut Workers,
    library: &Library,
    layout: &str,
    only: Option<&str>,
) -> Result<Planned, Failure> {
    let layout = library.find(layout).map_err(Failure::of)?;
    let node = workers.snapshot().await;
    let mut target = target::resolve(layout, &node).map_err(Failure::of)?;
    if let Some(only) = only {
        let gpu = choose::gpu(&node, only).map_err(|fault| Failure::of(vec![fault]))?;
        target.narrow(gpu).map_err(|fault| Failure::of(vec![fault]))?;
    }
    if !target.blocked.is_empty() {
        return Err(Failure::of(target.blocked.into_iter().map(|blocked| blocked.diagnostic).collect()));
    }
    let plan = plan::make(&node, &target, &Policy::default()).map_err(Failure::of)?;
    let faults = plan::audit(&plan, &node);
    if !faults.is_empty() {
        let text =
            "the plan did not pass its own audit, so nothing was done; please report this with its details";
        let mut details = vec![Diagnostic::error(Reason::Internal, text)];
        details.extend(faults);
        return Err(Failure::of(details));
    }
    Ok(Planned { node, plan })
}

fn told(error: &EngineError) -> Failure {
    let failure = error.failure();
    Failure::of(vec![Diagnostic::error(failure.reason, failure.message)])
}
