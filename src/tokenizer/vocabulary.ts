/** Builds the tables of a byte-level BPE vocabulary from what a tokenizer.json says. */
import { alphabetBytes, byteCharacters } from './byte-alphabet.js';
import { Merger } from './merger.js';
import { newSharedInts } from './shared-arrays.js';
import { hashUnits, pairSlot, shiftOf, type VocabularyTables } from './vocabulary-tables.js';

/** How a vocabulary is written in a tokenizer.json. */
export interface VocabularySource {
  /** Token to id, in GPT-2's alphabet of bytes. */
  readonly vocab: Readonly<Record<string, number>>;
  /** `left right`, or the two apart; the first has the lowest rank. */
  readonly merges: readonly (string | readonly [string, string])[];
  /** A piece that is a token is that token, whatever the merges say. */
  readonly ignoreMerges: boolean;
}

function newTable(entries: number): Int32Array {
  return newSharedInts(4 * 2 ** Math.ceil(Math.log2(Math.max(16, entries * 2))));
}

/** Throws an `Error` that says what is not understood. */
export function buildVocabulary(source: VocabularySource): VocabularyTables {
  const vocab = new Map(Object.entries(source.vocab));
  const byteTokens = newSharedInts(256);
  for (const [byte, char] of byteCharacters().entries()) {
    const id = vocab.get(char);
    if (id === undefined) throw new Error(`a vocabulary without a token for the byte ${byte}`);
    byteTokens[byte] = id;
  }
  const pairs = buildPairs(source, vocab);
  const tables = { byteTokens, pairs, pieces: newTable(1), pieceUnits: new Uint16Array(0), tokenBytesMax: 1 };
  return { ...tables, ...buildPieces(tables, vocab, source.ignoreMerges) };
}

function buildPairs({ merges }: VocabularySource, vocab: ReadonlyMap<string, number>): Int32Array {
  const pairs = newTable(merges.length);
  pairs.fill(-1);
  const shift = shiftOf(pairs);
  const mask = pairs.length - 1;
  for (const [rank, merge] of merges.entries()) {
    const [left, right] = typeof merge === 'string' ? splitMerge(merge) : merge;
    const ids = [left, right, left + right].map((token) => {
      const id = vocab.get(token);
      if (id === undefined) throw new Error(`a merge (number ${rank}) of tokens that the vocabulary does not have`);
      return id;
    });
    let at = pairSlot(ids[0]!, ids[1]!, shift) * 4;
    while (pairs[at] !== -1 && (pairs[at] !== ids[0] || pairs[at + 1] !== ids[1])) at = (at + 4) & mask;
    pairs[at] = ids[0]!;
    pairs[at + 1] = ids[1]!;
    pairs[at + 2] = rank;
    pairs[at + 3] = ids[2]!;
  }
  return pairs;
}

function splitMerge(merge: string): [string, string] {
  const parts = merge.split(' ');
  if (parts.length !== 2) throw new Error('a merge that is not two tokens with a space between');
  return [parts[0]!, parts[1]!];
}

/** The tokens that a whole piece may be: those that are text, and that the merges lead to unless these are ignored. */
function buildPieces(
  tables: VocabularyTables,
  vocab: ReadonlyMap<string, number>,
  ignoreMerges: boolean,
): Pick<VocabularyTables, 'pieces' | 'pieceUnits' | 'tokenBytesMax'> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  const merger = new Merger(tables);
  const texts: { text: string; id: number }[] = [];
  let tokenBytesMax = 1;
  let units = 0;
  for (const [token, id] of vocab) {
    const bytes = alphabetBytes(token);
    if (bytes === null || bytes.length === 0) continue;
    tokenBytesMax = Math.max(tokenBytesMax, bytes.length);
    if (!ignoreMerges && !(merger.merge(bytes, bytes.length) === 1 && merger.tokens[0] === id)) continue;
    let text: string;
    try {
      text = decoder.decode(bytes);
    } catch {
      continue;
    }
    texts.push({ text, id });
    units += text.length;
  }
  const pieces = newTable(texts.length);
  const pieceUnits = new Uint16Array(new SharedArrayBuffer(units * 2));
  let filled = 0;
  for (const { text, id } of texts) {
    for (let i = 0; i < text.length; i++) pieceUnits[filled + i] = text.charCodeAt(i);
    insertPiece(pieces, hashUnits(pieceUnits, filled, filled + text.length), filled, text.length, id);
    filled += text.length;
  }
  return { pieces, pieceUnits, tokenBytesMax };
}

function insertPiece(pieces: Int32Array, hash: number, first: number, length: number, id: number): void {
  const mask = pieces.length - 1;
  let at = (hash >>> shiftOf(pieces)) * 4;
  while (pieces[at + 2] !== 0) at = (at + 4) & mask;
  pieces[at] = hash;
  pieces[at + 1] = first;
  pieces[at + 2] = length;
  pieces[at + 3] = id;
}
