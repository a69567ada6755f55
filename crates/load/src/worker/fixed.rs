//! The scenario `fixed`: sends a fixed request over and over.

use super::{Desk, Worker};
use crate::call::Call;
use crate::{Error, FixedRequest};

/// A connection that sends a fixed request.
pub(crate) struct Fixed {
    desk: Desk,
    call: Call,
    status_expected: u16,
}

impl Fixed {
    pub(crate) fn new(desk: Desk, request: &FixedRequest) -> Result<Self, Error> {
        let call = desk.call(request.method.clone(), &request.path, request.body.clone())?;
        Ok(Self { desk, call, status_expected: request.status_expected })
    }
}

impl Worker for Fixed {
    fn desk(&mut self) -> &mut Desk {
        &mut self.desk
    }

    async fn prepare(&mut self) -> Result<(), Error> {
        self.desk.connect().await
    }

    async fn turn(&mut self) -> Result<(), Error> {
        self.desk.fixed(&self.call, self.status_expected).await
    }

    async fn finish(self) -> Result<(), Error> {
        Ok(())
    }
}
