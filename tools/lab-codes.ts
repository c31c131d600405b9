/**
 * Makes the lab model's code vectors again and writes them as data.
 *
 *   node dist/tools/lab-codes.js
 */
import { writeFileSync } from 'node:fs';
import { encodeLabCodes, LAB_CODES_SEED, makeLabCodes } from '../src/model/lab-codes.js';

const base64 = encodeLabCodes(makeLabCodes(LAB_CODES_SEED));
writeFileSync(
  'src/model/lab-codes.data.ts',
  `// Made by tools/lab-codes.ts; do not edit. Int8 (5 codes, 259 tokens, 38 dimensions).\nexport const labCodesBase64: string =\n  '${base64}';\n`,
);
