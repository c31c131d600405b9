/** What `cofferdam.yaml` may say of how the server runs: waiting for engines, processes, the secret of salts, the log of settled requests. */
import type { Field } from '../config/shape.js';
import * as defaults from './defaults.js';
import {
  USAGE_KEEP,
  USAGE_KEEP_MAX,
  USAGE_ROTATE_BYTES,
  USAGE_ROTATE_BYTES_MAX,
  USAGE_ROTATE_BYTES_MIN,
} from './usage-log.js';

export const RUNNING: readonly Field[] = [
  {
    name: 'start',
    shape: { kind: 'choice', of: ['refuse', 'wait'] },
    words: 'When an engine can not be reached at the start: refuse to start, or wait until it answers',
    default: 'refuse',
    flag: '--wait',
  },
  {
    name: 'workers',
    shape: { kind: 'count', min: 1, max: defaults.WORKERS_MAX, unit: 'processes', suffixes: false },
    words: 'How many processes share the tenants’ port, each with limits of its own',
    default: 1,
    flag: '--workers',
  },
  {
    name: 'secret',
    shape: { kind: 'secret', whole: true },
    words:
      'What salts are made from: replicas with one secret behave as one. Not said: each start draws its own, and prefix caches begin anew',
    flag: '--secret',
    example: ['secret: env:COFFERDAM_SECRET'],
  },
];

export const USAGE: Field = {
  name: 'usage',
  words: 'A log of settled requests: who, where, how many tokens, how it ended; never text',
  shape: {
    kind: 'record',
    fields: [
      {
        name: 'path',
        shape: { kind: 'text', pattern: '.{1,4000}', words: 'a file, made where it is not there' },
        words: 'Where it is written, a line of JSON each. Not said: nowhere',
        flag: '--usage',
      },
      {
        name: 'rotate-bytes',
        shape: {
          kind: 'count',
          min: USAGE_ROTATE_BYTES_MIN,
          max: USAGE_ROTATE_BYTES_MAX,
          unit: 'bytes',
          suffixes: true,
        },
        words: 'From this size on the file is renamed to `PATH.1`, that to `PATH.2`, and a new one begins',
        default: USAGE_ROTATE_BYTES,
      },
      {
        name: 'keep',
        shape: { kind: 'count', min: 1, max: USAGE_KEEP_MAX, unit: 'files', suffixes: false },
        words: 'How many renamed files are kept',
        default: USAGE_KEEP,
      },
    ],
  },
};
