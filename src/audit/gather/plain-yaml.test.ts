/**
 * Goal: what the quick reader of YAML takes, it takes exactly as the full parser does, lines included; and it takes what
 * manifests are made of. Method: fixtures and odd forms against the full parser, then mutations of them; the seed is in the title.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { Prng } from '../../base/prng.js';
import { readPlainYaml } from './plain-yaml.js';
import { parseWholeYaml } from './tree.js';

const SEED = Number(process.env.SEED ?? 7);
const INPUTS = process.env.COFFERDAM_LONG === '1' ? 100_000 : 3_000;

const fixture = (name: string): string =>
  readFileSync(new URL(`../../../../test/fixtures/audit/manifests/${name}`, import.meta.url), 'utf8');

const FORMS = `---
# above
apiVersion: v1
kind: Deployment # behind
metadata: {name: d, labels: {"a.b/c": 'x y', n: 1}, empty: {}, list: [a, "b, c", -1, [d]]}
spec:
  replicas: 0x10
  yes: True
  none: ~
  nothing:
  quoted: "a # b: c"
  single: 'it: is'
  "key in quotes": v
  time: 2026-01-01T10:00:00Z
  url: http://h:30000/x#y
  template:
    spec:
      containers:
      - name: engine
        image: lmsysorg/sglang:v0.5.18-cu126
        command: ["python3", "-m", "sglang.launch_server"]
        args:
          - --model-path=m
          - "8192"
          - -c
          - |
            exec vllm serve m \\
              --port 8000

            # not a comment
          - |-
            one

        env:
        - name: A
          value: ""
        - name: B
      nodeSelector:
        x: y

  last: 1e3
`;

const SPLICES = ['\n', '\n  ', '\n    ', ' ', '  ', ': ', ':', '- ', '-', '#', ' #', '"', "'", '[', ']', '{', '}', ',', ', ', '|', '|-', '>', '\\', '&a ', '*a', '!!str ', '<<: ', '?', '%', '---', '\n---\n', '...', '~', 'null', 'true: ', 'x:\n', '\t', '=', '@', '.inf', '0o7']; // biome-ignore format: a list

/** Null: the quick reader left it. Throws where the two differ. */
function compared(text: string, linesBefore: number): boolean {
  const quick = readPlainYaml(text, linesBefore);
  if (quick === null) return false;
  const whole = parseWholeYaml(text, linesBefore);
  assert.deepEqual({ documents: [quick] }, whole, `seed ${SEED}: ${JSON.stringify(text)}`);
  return true;
}

test('what manifests are made of is read quickly, and as the full parser reads it', () => {
  assert.ok(compared(FORMS, 12));
  const documents = ['incident.yaml', 'remedied.yaml', 'compose.yaml', 'routers.yaml'].flatMap((name) =>
    fixture(name).split(/^(?=---)/m),
  );
  assert.ok(documents.filter((text) => compared(text, 3)).length > documents.length / 2, 'most fixtures are plain');
});

test('what is more than that is left to the full parser', () => {
  const more = ['a: &x 1\n', 'a: *x\n', 'a: !!str 1\n', 'a: >\n  x\n', 'a: x\n  y\n', 'a: "x\n  y"\n', 'a: [x,\n  y]\n', '<<: {a: 1}\n', '? a\n: b\n', 'a: b: c\n', 'a: 1', 'a:\n\tb: 1\n', '- - a\n', 'a: "\\x41"\n', '%YAML 1.1\n', 'a: 1\n b: 2\n', 'true: 1\n', '']; // biome-ignore format: a list
  for (const text of more) assert.equal(readPlainYaml(text, 0), null, JSON.stringify(text));
  assert.equal(readPlainYaml(`a: ${'['.repeat(3000)}${']'.repeat(3000)}\n`, 0), null);
  const deep = Array.from({ length: 3000 }, (_, depth) => `${' '.repeat(depth % 1000)}a:\n`).join('');
  assert.equal(readPlainYaml(deep, 0), null);
});

test('a long run of anything is read in time', () => {
  const blanks = `a: |\n  x\n${'\n'.repeat(390_000)}  y\nb: 1\n`;
  const runs = [
    blanks,
    `a: ${' '.repeat(390_000)}x\n`,
    `a: [${'a,'.repeat(190_000)}b]\n`,
    `a: ${'a:'.repeat(190_000)}b\n`,
  ];
  for (const text of [...runs, `a: "${'b'.repeat(390_000)}\n`, `${'- '.repeat(190_000)}a\n`]) {
    const { user } = process.cpuUsage();
    readPlainYaml(text, 0);
    assert.ok(process.cpuUsage().user - user < 1_000_000, `took more than a second: ${text.slice(0, 20)}`);
  }
});

test(`mutated manifests are read alike by both or left to the full parser (seed ${SEED})`, () => {
  const bases = [FORMS, ...fixture('incident.yaml').split(/^(?=---)/m), ...fixture('routers.yaml').split(/^(?=---)/m)];
  const prng = new Prng(SEED);
  let taken = 0;
  for (let i = 0; i < INPUTS; i++) {
    let text = bases[i % bases.length]!;
    for (let times = 1 + prng.below(3); times > 0; times--) {
      const at = prng.below(text.length + 1);
      const cut = prng.below(4) === 0 ? prng.below(30) : prng.below(2);
      text =
        text.slice(0, at) + (prng.below(3) === 0 ? '' : SPLICES[prng.below(SPLICES.length)]!) + text.slice(at + cut);
    }
    if (compared(text, i % 5)) taken++;
  }
  assert.ok(taken > INPUTS / 10, `the quick reader took ${taken} of ${INPUTS}`);
});
