//! The scenario `fixed`: sends a fixed request over and over.

use super::{Caller, Worker};
use crate::call::Call;
use crate::{Error, FixedRequest};

/// A connection that sends a fixed request.
pub(crate) struct Fixed {
    caller: Caller,
    call: Call,
    status_expected: u16,
}

impl Fixed {
    pub(crate) fn new(caller: Caller, request: &FixedRequest) -> Result<Self, Error> {
        let call = caller.call(request.method.clone(), &request.path, request.body.clone())?;
        Ok(Self { caller, call, status_expected: request.status_expected })
    }
}

impl Worker for Fixed {
    fn caller(&mut self) -> &mut Caller {
        &mut self.caller
    }

    async fn prepare(&mut self) -> Result<(), Error> {
        self.caller.connect().await
    }

    async fn turn(&mut self) -> Result<(), Error> {
        self.caller.fixed(&self.call, self.status_expected).await
    }

    async fn finish(self) -> Result<(), Error> {
        Ok(())
    }
}
