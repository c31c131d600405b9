/**
 * The safetensors format: the length of the header (8 bytes, little-endian), the header (JSON: dtype, shape and place of each
 * tensor, places counted from the header's end), then the tensors, one directly behind the other.
 */
import { type CheckpointFile, type CheckpointTensor, tensorBytes } from './checkpoint.js';

/** The data begin at a multiple of this, so that a reader can use them where they lie. */
const HEADER_ALIGNMENT_BYTES = 8;

export function safetensorsFile(name: string, tensors: readonly CheckpointTensor[]): CheckpointFile {
  // `format` tells `transformers` that names and layouts are PyTorch's.
  const header: Record<string, unknown> = { __metadata__: { format: 'pt' } };
  let end = 0;
  for (const { hfName, shape, data } of tensors) {
    const begin = end;
    end += data.byteLength;
    header[`${hfName}.weight`] = { dtype: 'F32', shape, data_offsets: [begin, end] };
  }
  const json = JSON.stringify(header);
  const padded = Math.ceil(json.length / HEADER_ALIGNMENT_BYTES) * HEADER_ALIGNMENT_BYTES;
  const length = new Uint8Array(8);
  new DataView(length.buffer).setBigUint64(0, BigInt(padded), true);
  const head = new TextEncoder().encode(json.padEnd(padded, ' '));
  return {
    name,
    bytes: length.length + head.length + end,
    *chunks(): Iterable<Uint8Array> {
      yield length;
      yield head;
      for (const { data } of tensors) yield tensorBytes(data);
    },
  };
}
