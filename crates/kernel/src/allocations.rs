//! An allocator that counts, for tests: they hold how often a request asks for memory. No program of ours uses it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, which counts for each thread how often it is asked for memory: as `#[global_allocator]`.
pub struct CountingAllocator;

thread_local! {
    /// Neither made on first use nor dropped at a thread's end: both could allocate.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// Returns the number of times this thread has asked for memory, or for more where it had some,
/// since it began. Always 0 under another allocator.
#[must_use]
pub fn allocations() -> u64 {
    ALLOCATIONS.get()
}

fn count() {
    ALLOCATIONS.set(ALLOCATIONS.get() + 1);
}

// SAFETY: each call goes on to `System` as it is, and counting touches no memory but the thread's counter.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract of `alloc`, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the memory is from `System`, by the calls here, with this layout.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps the contract of `alloc_zeroed`, which is the same.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count();
        // SAFETY: the memory is from `System`, by the calls here, with this layout, and the caller answers for the size.
        unsafe { System.realloc(memory, layout, new_size) }
    }
}
