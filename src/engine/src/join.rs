//! Runs futures side by side in one task, so that they may borrow and need no runtime of their own.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    task::Poll,
};

/// All outputs in the order of the futures. Every one is polled at each wake: meant for the GPUs of a node.
pub(crate) async fn all<'a, T>(futures: impl IntoIterator<Item = impl Future<Output = T> + 'a>) -> Vec<T> {
    enum Slot<F, T> {
        Waiting(Pin<Box<F>>),
        Done(T),
    }
    let mut slots: Vec<_> = futures.into_iter().map(|f| Slot::Waiting(Box::pin(f))).collect();
    poll_fn(|context| {
        let mut waiting = false;
        for slot in &mut slots {
            if let Slot::Waiting(future) = slot {
                match future.as_mut().poll(context) {
                    Poll::Ready(output) => *slot = Slot::Done(output),
                    Poll::Pending => waiting = true,
                }
            }
        }
        if waiting { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    let done = |slot| if let Slot::Done(output) = slot { Some(output) } else { None };
    slots.into_iter().filter_map(done).collect()
}
