//! Which server has which bucket.

use std::sync::Arc;

use seatkeeper_core::Bucket;

use super::link::Link;
use super::settings::{Deployment, Settings};
use super::target::Target;
use crate::Error;

/// The way to each bucket's server.
#[derive(Debug)]
pub(super) struct Router {
    link: Arc<Link>,
}

impl Router {
    pub(super) fn new(settings: &Arc<Settings>) -> Self {
        let target = match &settings.deployment {
            Deployment::Standalone(address) => Target::Fixed(address.clone()),
            Deployment::Sentinel { sentinels, primary } => {
                Target::Primary { sentinels: sentinels.clone(), name: primary.clone() }
            }
            Deployment::Cluster(nodes) => Target::Fixed(nodes[0].clone()),
        };
        Self { link: Link::new(Arc::clone(settings), target) }
    }

    /// The way to a bucket's server.
    pub(super) async fn link(&self, _bucket: Bucket) -> Result<Arc<Link>, Error> {
        Ok(Arc::clone(&self.link))
    }
}
