//! Methods of `#[async_trait]` traits whose futures are boxed by what they call.
//!
//! `#[async_trait]` gives each method lifetime bounds, and under such bounds the compiler proves anew, for each method, that
//! everything in its future can be sent to another thread. For the engine's plans and expressions, that took four fifths of the
//! time of compiling this crate. A method that only returns a boxed future has nothing to prove; functions without such bounds
//! share their proofs.

/// Declares methods of an `#[async_trait]` trait: `fn name<'a, 'b>(&'a self, argument: &'b T) -> Output { … }`, where the body
/// returns a pinned, boxed future of the output. All lifetimes are named, those of the trait's declaration first.
macro_rules! boxed_futures {
    ($(
        fn $name:ident<$($life:lifetime),+>(&$this:lifetime $self:ident $(, $argument:ident: $type:ty)* $(,)?) -> $output:ty
        $body:block
    )+) => {$(
        fn $name<$($life,)+ 'future>(
            &$this $self
            $(, $argument: $type)*
        ) -> std::pin::Pin<Box<dyn std::future::Future<Output = $output> + Send + 'future>>
        where
            $($life: 'future,)+
            Self: 'future,
        $body
    )+};
}

pub(crate) use boxed_futures;
