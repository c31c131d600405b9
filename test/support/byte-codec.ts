import type { TextCodec } from '../../src/upstream/embedded/adapter.js';

/** One byte, one token, as the lab model has it; enough for tests of what stands in front of an engine. */
export const byteCodec: TextCodec = {
  encode: (text) => Int32Array.from(Buffer.from(text, 'utf8')),
  countTokens: (text) => Buffer.byteLength(text, 'utf8'),
  renderChat: (messages) => `${messages.map((each) => `${each.role}: ${each.content}\n`).join('')}assistant: `,
  newDecoder: () => {
    const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
    return {
      push: (id) => decoder.decode(Uint8Array.of(id), { stream: true }),
      end: () => decoder.decode(),
    };
  },
};
