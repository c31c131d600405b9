/** What several scenarios do alike. */
import type { Call } from '../call.js';
import type { World } from '../world.js';

/** Tokens of output that globex asks for: two markers would fit. */
export const OUTPUT_TOKENS = 64;

/** Acme is served, and what it leaves in the pages of decode's pool is its prompt and its answer. */
export async function acmeFillsPages(world: World, promptTokens: number, outputTokens: number): Promise<Call> {
  const call = await world.send('acme', world.prompts.acme(promptTokens), { maxTokens: outputTokens });
  await world.finish(call);
  world.settle(call);
  const pages = Math.ceil(call.pageText.length / world.engine.config.pageTokens);
  world.tell(
    `acme sent a prompt of ${promptTokens} tokens with a key of its own in it, was served, and left ${pages} pages behind.`,
  );
  return call;
}

/** Acme sends a prompt whose page writes stay on the wire, all of them posted and none landed. */
export async function acmeIsInTransfer(world: World, promptTokens: number): Promise<Call> {
  const call = await world.send('acme', world.prompts.acme(promptTokens), { maxTokens: OUTPUT_TOKENS });
  const { wire } = world.engine.prefill;
  wire.hold((write) => write.slot === call.slot && write.attempt === call.attempt);
  const pages = Math.ceil(promptTokens / world.engine.config.pageTokens);
  world.run(() => call.slot !== null && wire.inFlight(call.slot, call.attempt) >= pages);
  world.tell(`acme sent a prompt of ${promptTokens} tokens; its ${pages} page writes were still on the wire.`);
  return call;
}

export async function globexAsks(
  world: World,
  tokens: number,
  fields: Readonly<Record<string, unknown>> = {},
): Promise<Call> {
  const call = await world.send('globex', world.prompts.globex(tokens), { maxTokens: OUTPUT_TOKENS, fields });
  world.pages.watch(call);
  return call;
}
