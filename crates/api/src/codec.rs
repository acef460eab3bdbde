//! The protobuf codec, with buffers for messages of usual size.

use std::marker::PhantomData;

use prost::Message;
use tonic::codec::{BufferSettings, Codec as TonicCodec};
use tonic_prost::{ProstDecoder, ProstEncoder};

/// Size of a buffer. Most objects and patches are smaller; a buffer that grows is copied whole.
const BUFFER_BYTES: usize = 16 << 10;
/// Size up to which responses of a stream are sent together: tonic's default.
const YIELD_BYTES: usize = 32 << 10;

/// The codec of the generated code.
#[derive(Debug)]
pub(crate) struct Codec<T, U>(PhantomData<(T, U)>);

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
