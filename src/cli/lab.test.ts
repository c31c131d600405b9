/**
 * Goal: `cofferdam lab` writes a checkpoint whole or not at all, over nothing that was there, and says in words what is in its
 * way. Method: the program in folders of its own; writing with a disk that fills up at any byte; paths of any characters.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import fc from 'fast-check';
import { CodedError } from '../base/errors.js';
import { type CheckpointFile, textFile } from '../model/export/checkpoint.js';
import { writeCheckpoint } from './checkpoint-files.js';
import { quoted } from './lab-run.js';
import { runProgram } from './program.js';

const SEED = Number(process.env.SEED ?? 77);
const ROOT = fs.mkdtempSync(join(tmpdir(), 'cofferdam-lab-'));
after(() => fs.rmSync(ROOT, { recursive: true, force: true }));
let folders = 0;
const fresh = (): string => {
  const path = join(ROOT, `case-${folders++}`);
  fs.mkdirSync(path);
  return path;
};

async function run(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const out: string[] = [];
  const err: string[] = [];
  const io = {
    out: (text: string): void => void out.push(text),
    err: (text: string): void => void err.push(text),
    variables: {},
    outIsTerminal: false,
  };
  const code = await runProgram(['lab', ...args], io, { faultNames: () => Promise.resolve([]) });
  return { code, out: out.join(''), err: err.join('') };
}

/** Every path below a folder with its contents; of a folder, nothing. */
function tree(folder: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (const name of fs.readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort()) {
    const path = join(folder, name);
    const kind = fs.lstatSync(path);
    found[name] = kind.isDirectory()
      ? '(folder)'
      : kind.isSymbolicLink()
        ? fs.readlinkSync(path)
        : fs.readFileSync(path, 'latin1');
  }
  return found;
}

test('both formats are written with all that belongs to them, and no other file', async () => {
  const folder = fresh();
  const hf = await run('--format', 'hf', join(folder, 'new', 'hf'), '--context', '4k');
  assert.deepEqual([hf.code, hf.err], [0, '']);
  const names = [
    'config.json',
    'generation_config.json',
    'model.safetensors',
    'tokenizer.json',
    'tokenizer_config.json',
  ];
  assert.deepEqual(fs.readdirSync(join(folder, 'new', 'hf')).sort(), names);
  for (const name of names) assert.ok(hf.out.includes(join(folder, 'new', 'hf', name)), name);
  assert.match(
    hf.out,
    /vllm serve .*--max-model-len 4096\n.*sglang\.launch_server .*--context-length 4096\n.*--format gguf DIR/,
  );
  const gguf = await run('--format', 'gguf', join(folder, 'g'), '--output', 'json');
  assert.deepEqual([gguf.code, gguf.err], [0, '']);
  const path = join(folder, 'g', 'lab.gguf');
  const bytes = fs.statSync(path).size;
  assert.deepEqual(JSON.parse(gguf.out), { format: 'gguf', contextTokens: 8192, files: [{ path, bytes }] });
});

test('a DIR that ends in .gguf is the file itself, unless it is a folder', async () => {
  const folder = fresh();
  fs.mkdirSync(join(folder, 'a.gguf'));
  assert.equal((await run('--format', 'gguf', join(folder, 'a.gguf'))).code, 0);
  const named = await run('--format', 'gguf', join(folder, "b's.gguf"));
  assert.match(named.out, /llama-server -m '.*b'\\''s\.gguf' /);
  assert.deepEqual(Object.keys(tree(folder)), ['a.gguf', 'a.gguf/lab.gguf', "b's.gguf"]);
});

test('a context beyond what the construction is tried for is written with a warning', async () => {
  const { code, err } = await run('--format', 'gguf', fresh(), '--context', '16k');
  assert.equal(code, 0);
  assert.match(err, /^warning: the lab model is tried up to 8192 tokens/);
});

const USAGE: readonly (readonly [string[], RegExp])[] = [
  [['DIR'], /^error: Expected `--format` to be `hf` or `gguf`, got nothing$/],
  [['--format', 'onnx', 'DIR'], /^error: Expected `--format` to be `hf` or `gguf`, got `onnx`$/],
  [['--format', 'hf'], /missing required argument/],
  [['--format', 'hf', ''], /^error: Expected DIR to be a path of 1 to 4095 characters/],
  [['--format', 'hf', 'a\0b'], /without NUL/],
  [['--format', 'hf', 'x'.repeat(5000)], /got one of 5000 characters/],
  [
    ['--format', 'hf', 'DIR', '--context', '1'],
    /^error: Expected `--context` to be a whole number from 2 to 1048576, got `1`$/,
  ],
  [['--format', 'hf', 'DIR', '--output', 'xml'], /Expected `--output`/],
];

for (const [args, words] of USAGE) {
  test(`\`cofferdam lab ${args.join(' ').slice(0, 40).replaceAll('\0', '\\0')}\` is wrong usage: exit code 2, one line`, async () => {
    const folder = fresh();
    const { code, out, err } = await run(...args.map((arg) => (arg === 'DIR' ? folder : arg)));
    assert.deepEqual([code, out], [2, '']);
    assert.match(err.trimEnd(), words);
    assert.equal(err.indexOf('\n'), err.length - 1);
    assert.deepEqual(tree(folder), {});
  });
}

test('a file that is there stays as it is without --force, and is replaced with it', async () => {
  const folder = fresh();
  const path = join(folder, 'config.json');
  fs.writeFileSync(path, 'mine');
  fs.writeFileSync(join(folder, 'notes.txt'), 'mine too');
  const refused = await run('--format', 'hf', folder);
  assert.equal(refused.code, 2);
  assert.match(refused.err, /^error: Expected `.*` to have no `config\.json` yet, got one\. .*`--force`\n$/);
  assert.deepEqual(tree(folder), { 'config.json': 'mine', 'notes.txt': 'mine too' });
  assert.equal((await run('--format', 'hf', folder, '--force')).code, 0);
  assert.match(fs.readFileSync(path, 'utf8'), /LlamaForCausalLM/);
  assert.equal(fs.readFileSync(join(folder, 'notes.txt'), 'utf8'), 'mine too');
});

test('what cannot be a folder is named: a file in its place or above it, a protected one, one in /proc', async () => {
  const folder = fresh();
  fs.writeFileSync(join(folder, 'file'), '');
  fs.symlinkSync('nowhere', join(folder, 'dangling'));
  for (const dir of ['file', 'file/below/it', 'dangling']) {
    const { code, err } = await run('--format', 'hf', join(folder, dir));
    assert.equal(code, 2);
    assert.match(err, /got a file in the place of a folder\n$/);
  }
  if (fs.existsSync('/proc/self')) {
    const { code, err } = await run('--format', 'hf', '/proc/cofferdam/x');
    assert.equal(code, 2);
    assert.match(
      err,
      /^error: Expected `\/proc\/cofferdam\/x` to be a folder that can be written, got .*E[A-Z]+\)?\n$/,
    );
  }
  const long = await run('--format', 'hf', join(folder, 'x'.repeat(300)));
  assert.deepEqual([long.code, long.err.includes('ENAMETOOLONG')], [2, true]);
  assert.deepEqual(tree(folder), { dangling: 'nowhere', file: '' });
});

test('a folder that this user may not write is refused', {
  skip: process.getuid?.() === 0 && 'root may write it',
}, async () => {
  const folder = fresh();
  fs.chmodSync(folder, 0o555);
  const { code, err } = await run('--format', 'hf', folder);
  fs.chmodSync(folder, 0o755);
  assert.equal(code, 2);
  assert.match(err, /got one that the system protects \(EACCES\)\n$/);
});

/** A disk with room for `room` bytes: what is written beyond them fails as it does on a full one. */
function fullDisk(room: number, code: string): (file: number, bytes: Uint8Array, offset: number) => number {
  let left = room;
  return (file, bytes, offset) => {
    if (left === 0) throw Object.assign(new Error(`${code}: no space left`), { code });
    const written = fs.writeSync(file, bytes, offset, Math.min(left, bytes.length - offset));
    left -= written;
    return written;
  };
}

const SMALL: readonly CheckpointFile[] = [
  { name: 'model.safetensors', bytes: 9, chunks: () => [Buffer.from('abc'), Buffer.from('defghi')] },
  textFile('config.json', '{"a":1}'),
];
const SMALL_TREE = { 'config.json': '{"a":1}', 'model.safetensors': 'abcdefghi' };

function refusal(fn: () => void): CodedError {
  try {
    fn();
  } catch (thrown) {
    assert.ok(thrown instanceof CodedError && thrown.code === 'usage', String(thrown));
    return thrown;
  }
  return assert.fail('it was let through');
}

test('a disk that fills up at any byte leaves everything as it was', () => {
  for (const code of ['ENOSPC', 'EDQUOT', 'EIO']) {
    for (const room of code === 'ENOSPC' ? Array.from({ length: 16 }, (_, bytes) => bytes) : [0, 12]) {
      const folder = fresh();
      fs.writeFileSync(join(folder, 'config.json'), 'mine');
      const write = fullDisk(room, code);
      const inside = refusal(() => writeCheckpoint(folder, SMALL, { force: true, write }));
      assert.ok(inside.message.includes(code), inside.message);
      const below = refusal(() => writeCheckpoint(join(folder, 'a', 'b'), SMALL, { force: false, write }));
      if (code !== 'EIO') assert.match(below.message, /^Expected space for 16 bytes in `.*a\/b`, got too little/);
      assert.deepEqual(tree(folder), { 'config.json': 'mine' }, `${code} after ${room} bytes`);
    }
  }
});

test('what a system protects is said to be protected', () => {
  const write = fullDisk(0, 'EACCES');
  const { message } = refusal(() => writeCheckpoint(fresh(), SMALL, { force: false, write }));
  assert.match(
    message,
    /^Expected `.*` to be a folder that can be written, got one that the system protects \(EACCES\)$/,
  );
});

test('a write that takes few bytes at a time is continued', () => {
  const folder = fresh();
  const write = (file: number, bytes: Uint8Array, offset: number): number =>
    fs.writeSync(file, bytes, offset, Math.min(2, bytes.length - offset));
  writeCheckpoint(folder, SMALL, { force: false, write });
  assert.deepEqual(tree(folder), SMALL_TREE);
});

test('a folder in the place of a file, or a link there, is not written through', () => {
  const folder = fresh();
  fs.mkdirSync(join(folder, 'config.json'));
  assert.match(refusal(() => writeCheckpoint(folder, SMALL, { force: true })).message, /got a folder$/);
  assert.deepEqual(tree(folder), { 'config.json': '(folder)' });
  const other = fresh();
  fs.writeFileSync(join(other, 'secret'), 'keep');
  fs.symlinkSync('secret', join(other, 'config.json'));
  refusal(() => writeCheckpoint(other, SMALL, { force: false }));
  writeCheckpoint(other, SMALL, { force: true });
  assert.deepEqual(tree(other), { ...SMALL_TREE, secret: 'keep' });
});

test('an error that is no system error is a defect and stays what it is', () => {
  const folder = fresh();
  const broken: CheckpointFile = {
    name: 'config.json',
    bytes: 1,
    chunks: () => {
      throw new RangeError('a defect');
    },
  };
  assert.throws(() => writeCheckpoint(join(folder, 'x'), [broken], { force: false }), RangeError);
  assert.deepEqual(tree(folder), {});
});

const anyName = fc.oneof(
  fc.string({ unit: 'binary', minLength: 1, maxLength: 40 }),
  fc.string({ unit: 'grapheme', minLength: 1, maxLength: 80 }),
  fc
    .array(fc.constantFrom('.', '..', ' ', "'", '"', '$', '`', '\\', '\n', '*', '-', 'a', 'é', '字', '💧', '.gguf'), {
      minLength: 1,
      maxLength: 12,
    })
    .map((parts) => parts.join('')),
);
const inOneFolder = (name: string): boolean => !/[/\0]/.test(name) && name !== '.' && name !== '..';

test(`a folder of any name is written whole, or refused in one line and left as it was (seed ${SEED})`, () => {
  fc.assert(
    fc.property(fc.array(anyName.filter(inOneFolder), { minLength: 1, maxLength: 3 }), (names) => {
      const folder = fresh();
      const target = join(folder, ...names);
      try {
        writeCheckpoint(target, SMALL, { force: false });
      } catch (thrown) {
        assert.ok(thrown instanceof CodedError && thrown.code === 'usage', String(thrown));
        assert.ok(!/[\u0000-\u001f\u007f-\u009f\u202e]/.test(thrown.message), 'the message moves no terminal');
        assert.deepEqual(tree(folder), {});
        return;
      }
      assert.deepEqual(tree(target), SMALL_TREE);
    }),
    { seed: SEED, numRuns: 40 },
  );
});

test(`a path in a line to be pasted is one word for a shell, whatever it holds (seed ${SEED})`, () => {
  const sampled = fc.sample(anyName.filter(inOneFolder), { seed: SEED, numRuns: 200 });
  const ascii = Array.from({ length: 127 }, (_, code) => `a${String.fromCharCode(code + 1)}`);
  const names = [...sampled, ...ascii].map((name) => Buffer.from(name).toString());
  const script = `printf '%s\\0' ${names.map(quoted).join(' ')}`;
  const { stdout } = spawnSync('sh', ['-c', script], { encoding: 'utf8' });
  assert.deepEqual(stdout.split('\0').slice(0, -1), names);
});
