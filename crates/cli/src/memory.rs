//! The allocator of the program: jemalloc, which counts by process and by thread, and returns freed memory to the system.
//!
//! On Linux, C code uses it too. So the memory of SQLite is counted, and the system's allocator does not reserve 64 MiB of
//! addresses for each thread.

use datafusion_saved_search::memory::{Counters, count_with};
use tikv_jemalloc_ctl::thread::{ThreadLocal, allocatedp, deallocatedp};
use tikv_jemalloc_ctl::{background_thread, epoch, stats};
use tikv_jemallocator::Jemalloc;

#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// Counts the memory of statements, and returns freed memory to the system while the program is idle.
pub(crate) fn count() {
    count_with(Counters { allocated, of_thread });
    // Without threads of its own, the allocator returns memory when it is used next.
    let _ = background_thread::write(true);
}

fn allocated() -> u64 {
    // Numbers are those of the last epoch.
    let current = epoch::advance().and_then(|_| stats::allocated::read());
    current.map_or(0, |bytes| bytes as u64)
}

fn of_thread() -> i64 {
    fn numbers() -> Option<[ThreadLocal<u64>; 2]> {
        Some([allocatedp::read().ok()?, deallocatedp::read().ok()?])
    }
    thread_local! {
        static NUMBERS: Option<[ThreadLocal<u64>; 2]> = numbers();
    }
    NUMBERS
        .with(|numbers| numbers.map_or(0, |[allocated, freed]| allocated.get().wrapping_sub(freed.get()).cast_signed()))
}
