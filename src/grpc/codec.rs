//! Messages as protobuf, in buffers that hold a usual one.

use std::marker::PhantomData;

use prost::Message;
use tonic::codec::{BufferSettings, Codec as TonicCodec};
use tonic_prost::{ProstDecoder, ProstEncoder};

/// Most objects and most patches are smaller: a buffer that grows is copied whole.
const BUFFER_BYTES: usize = 16 << 10;
/// Answers of a stream are sent together up to here: tonic's default.
const YIELD_BYTES: usize = 32 << 10;

/// What the generated code encodes and decodes with.
#[derive(Debug)]
pub(super) struct Codec<T, U>(PhantomData<(T, U)>);

impl<T, U> Default for Codec<T, U> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T, U> TonicCodec for Codec<T, U>
where
    T: Message + Send + 'static,
    U: Message + Default + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = ProstEncoder<T>;
    type Decoder = ProstDecoder<U>;

    fn encoder(&mut self) -> Self::Encoder {
        ProstEncoder::new(settings())
    }

    fn decoder(&mut self) -> Self::Decoder {
        ProstDecoder::new(settings())
    }
}

fn settings() -> BufferSettings {
    BufferSettings::new(BUFFER_BYTES, YIELD_BYTES)
}
