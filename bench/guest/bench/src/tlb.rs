//! Figure 2 of the 1995 paper: an application calls a server and looks at its pages again.

use crate::{Chief, Entry, Failure, QUOTA, Result};
use sys::Uid;

unsafe extern "C" {
    fn bench_tlb_2();
    fn bench_tlb_4();
    fn bench_tlb_8();
    fn bench_tlb_16();
    fn bench_tlb_32();
    fn bench_tlb_48();
    fn bench_tlb_64();
    fn bench_tlb_server();
}

const APPLICATIONS: [Entry; 7] =
    [bench_tlb_2, bench_tlb_4, bench_tlb_8, bench_tlb_16, bench_tlb_32, bench_tlb_48, bench_tlb_64];

impl Chief {
    pub fn tlb_suite(&self) -> Result<()> {
        let near = sys::task_create(QUOTA, self.priority)?;
        let far = sys::task_create(QUOTA, self.priority)?;
        let server = self.start(far, bench_tlb_server, Uid::NIL)?;
        self.settle(server)?;
        for application in APPLICATIONS {
            let report = self.against(near, application, server)?;
            if report.words[1] != server.0 {
                return Err(Failure::Report(report.words[0], report.words[1]));
            }
        }
        sys::task_destroy(near)?;
        sys::task_destroy(far)?;
        Ok(())
    }
}
