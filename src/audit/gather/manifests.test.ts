/** Goal: what a manifest starts, and who can reach it, is read whatever kind of object it stands in. Method: small manifests. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { best, flagOf, switchOf, variableOf } from '../ask.js';
import { reachOf } from '../exposure.js';
import type { Fleet, NodeFacts } from '../facts.js';
import { classify } from './classify.js';
import { composePieces } from './compose.js';
import { fleetOf } from './gather.js';
import { type KubeObject, kubernetesPieces } from './kubernetes.js';

function read(text: string): Fleet {
  const found = classify(text);
  assert.equal(found.kind, 'manifest', found.kind === 'skipped' ? found.why : '');
  if (found.kind !== 'manifest') throw new Error('unreachable');
  const kubernetes = kubernetesPieces(found.kubernetes.map((tree) => ({ tree, file: 'm.yaml' })));
  const compose = found.compose.flatMap((tree) => composePieces(tree, 'm.yaml'));
  return fleetOf([...kubernetes, ...compose], [], { advertised: null, pools: [] });
}

function node(fleet: Fleet, name: string): NodeFacts {
  const found = fleet.nodes.find((one) => one.name === name);
  assert.ok(found !== undefined, `${name} is not among ${fleet.nodes.map((one) => one.name).join(', ')}`);
  return found;
}

const deployment = (name: string, pod: string): string => `apiVersion: apps/v1
kind: Deployment
metadata: {name: ${name}, namespace: llm}
spec:
  template:
    metadata: {labels: {app: ${name}}}
    spec:
${pod.replaceAll(/^/gm, '      ')}
`;

const ENGINE = `containers:
- name: engine
  image: lmsysorg/sglang:v0.5.18-cu126
  command: [python3, -m, sglang.launch_server]
  args:
  - --model-path=m
  - --context-length
  - "8192"
  - --disaggregation-mode=decode
  - --host=0.0.0.0
  ports: [{containerPort: 30000, name: http}, {containerPort: 8998}]`;

test('a value is told with the line that it stands on', () => {
  const found = node(read(deployment('d', ENGINE)), 'd');
  assert.deepEqual([found.engine, found.version?.text, found.role], ['sglang', '0.5.18', 'decode']);
  assert.deepEqual(best(found.advertised), { value: 8192, source: { kind: 'manifest', name: 'm.yaml', line: 14 } });
});

test('lines go on being counted in the second document of a file', () => {
  const found = node(read(`# first\n---\n---\n${deployment('d', ENGINE)}`), 'd');
  assert.equal(best(found.advertised)?.source.line, 17);
});

test('who reaches a port follows Services, policies, hostNetwork and the listener', () => {
  const service = (type: string): string =>
    `---\napiVersion: v1\nkind: Service\nmetadata: {name: s, namespace: llm}\nspec: {type: ${type}, selector: {app: d}, ports: [{port: 80, targetPort: http}]}\n`;
  const policy = (from: string): string =>
    `---\napiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: p, namespace: llm}\nspec: {podSelector: {matchLabels: {app: d}}, ingress: [{from: [${from}], ports: [{port: 30000}]}]}\n`;
  const ingress =
    '---\napiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: i, namespace: llm}\nspec: {rules: [{http: {paths: [{backend: {service: {name: s, port: {number: 80}}}}]}}]}\n';
  const base = deployment('d', ENGINE);
  const reach = (text: string, port = 30000): string => reachOf(node(read(text), 'd'), port).reach;
  assert.equal(reach(base), 'cluster');
  assert.equal(reach(base + service('ClusterIP')), 'cluster');
  assert.equal(reach(base + service('LoadBalancer')), 'outside');
  assert.equal(reach(base + service('LoadBalancer'), 8998), 'cluster', 'the Service does not lead to that port');
  assert.equal(reach(base + service('ClusterIP') + ingress), 'outside');
  assert.equal(reach(base + policy('{podSelector: {matchLabels: {app: router}}}')), 'restricted');
  assert.equal(reach(base + policy('{podSelector: {matchLabels: {app: router}}}'), 8998), 'restricted');
  assert.equal(reach(base + policy('{namespaceSelector: {}}')), 'cluster');
  assert.equal(reach(base + policy('{ipBlock: {cidr: 0.0.0.0/0}}')), 'cluster');
  assert.equal(reach(deployment('d', `hostNetwork: true\n${ENGINE}`)), 'outside');
  assert.equal(reach(deployment('d', ENGINE.replace('0.0.0.0', '127.0.0.1'))), 'loopback');
});

test('a policy of another namespace, or for other pods, closes nothing', () => {
  const other =
    '---\napiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: p, namespace: other}\nspec: {podSelector: {}}\n';
  const pods =
    '---\napiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\nmetadata: {name: p, namespace: llm}\nspec: {podSelector: {matchLabels: {app: x}}}\n';
  for (const text of [other, pods]) {
    assert.equal(reachOf(node(read(deployment('d', ENGINE) + text), 'd'), 30000).reach, 'cluster');
  }
});

test('variables are known when all of them are, unknown when some come from elsewhere, and fill `$(NAME)`', () => {
  const withEnv = (env: string): NodeFacts =>
    node(read(deployment('d', `${ENGINE.replace('"8192"', '"$(LEN)"')}\n${env}`)), 'd');
  const whole = withEnv('  env: [{name: LEN, value: "4096"}, {name: SGLANG_X, value: "1"}]');
  assert.equal(best(whole.advertised)?.value, 4096);
  assert.deepEqual([variableOf(whole, 'SGLANG_X').state, variableOf(whole, 'SGLANG_Y').state], ['set', 'unset']);
  const parts = withEnv(
    '  env: [{name: LEN, valueFrom: {configMapKeyRef: {name: a, key: b}}}]\n  envFrom: [{secretRef: {name: x}}]',
  );
  assert.equal(best(parts.advertised), null);
  assert.equal(variableOf(parts, 'SGLANG_Y').state, 'unknown');
});

test('a LeaderWorkerSet is one node, a Dynamo graph one for each service, a pod with a sidecar two', () => {
  const pod = (role: string): string =>
    `{containers: [{name: e, command: [sh, -c], args: ["python3 -m sglang.launch_server --model-path m --nnodes 2 --node-rank ${role}"]}]}`;
  const set = read(`apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: big}
spec:
  leaderWorkerTemplate:
    leaderTemplate: {spec: ${pod('0')}}
    workerTemplate: {spec: ${pod('1')}}
`);
  assert.deepEqual(
    set.nodes.map(({ name }) => name),
    ['big'],
  );
  const graph = read(`apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata: {name: g}
spec:
  services:
    Frontend:
      extraPodSpec: {mainContainer: {image: x, command: [python3, -m, dynamo.frontend]}}
    Decode:
      extraPodSpec: {mainContainer: {image: x, command: [python3, -m, dynamo.vllm], args: [--model, m, --max-model-len, 4k]}}
`);
  assert.deepEqual(
    graph.nodes.map(({ name, engine, role }) => [name, engine, role]),
    [
      ['g-Frontend', 'dynamo', 'router'],
      ['g-Decode', 'vllm', 'single'],
    ],
  );
  assert.equal(best(node(graph, 'g-Decode').advertised)?.value, 4000);
  const sidecar = read(
    deployment(
      'ms',
      `initContainers:
- {name: routing, image: "ghcr.io/llm-d/llm-d-routing-sidecar:v0.5", restartPolicy: Always, args: [--port=8000, --connector=nixlv2]}
containers:
- {name: vllm, image: "ghcr.io/llm-d/llm-d-cuda:v0.4", args: [serve, m, --max-model-len=32K]}`,
    ),
  );
  assert.deepEqual(
    sidecar.nodes.map(({ name, engine }) => [name, engine]),
    [
      ['ms/vllm', 'vllm'],
      ['ms/routing', 'llmd-sidecar'],
    ],
  );
});

test('a Compose file gives commands, variables as flags, and what is published where', () => {
  const fleet = read(`services:
  engine:
    image: vllm/vllm-openai:v0.32.0
    command: --model m --max-model-len 128k --no-enable-prefix-caching
    environment: {VLLM_API_KEY: "$KEY", PYTHONHASHSEED: "0"}
    ports: ["127.0.0.1:8000:8000"]
  slots:
    image: ghcr.io/ggml-org/llama.cpp:server-b11434
    command: ["-m", "x.gguf", "-c", "4096", "-np", "4"]
    environment: ["LLAMA_ARG_CTX_SIZE=1", "LLAMA_ARG_HOST=0.0.0.0"]
    ports: ["8080:8080"]
`);
  const vllm = node(fleet, 'engine');
  assert.deepEqual([vllm.engine, vllm.version?.text, best(vllm.advertised)?.value], ['vllm', '0.32.0', 128000]);
  assert.equal(switchOf(vllm, 'enable-prefix-caching', true)?.value, false);
  assert.deepEqual(flagOf(vllm, 'api-key').state, 'set');
  assert.equal(reachOf(vllm, 8000).reach, 'loopback');
  const slots = node(fleet, 'slots');
  assert.deepEqual([slots.version?.text, best(slots.advertised)?.value], ['b11434', 1024]);
  assert.equal(reachOf(slots, 8080).reach, 'outside');
});

test('anchors and merge keys are followed, objects in a list or in JSON are the same objects', () => {
  const anchored = read(
    deployment('d', ENGINE)
      .replace('args:', 'args: &a')
      .replace('apiVersion: apps/v1', 'apiVersion: apps/v1\nx-base: &base {a: 1}'),
  );
  assert.equal(best(node(anchored, 'd').advertised)?.value, 8192);
  const object = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p' },
    spec: { containers: [{ name: 'c', command: ['vllm', 'serve', 'm', '--max-model-len', '4096'] }] },
  };
  const listed = read(JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [object] }, null, 2));
  assert.equal(best(node(listed, 'p').advertised)?.value, 4096);
});

test('a chart that was not rendered is skipped with the command that renders it', () => {
  const found = classify('apiVersion: v1\nkind: Pod\n{{- if .Values.x }}\nspec: {}\n{{- end }}\n');
  assert.ok(found.kind === 'skipped' && found.why.includes('helm template'));
});

test('five thousand manifests are read within five seconds of CPU', () => {
  const before = process.cpuUsage();
  const text = deployment('d', ENGINE);
  const objects = Array.from({ length: 5000 }, (_, i) => classify(text.replaceAll(/\bd\b(?=[,}])/g, `d${i}`)));
  const trees = objects.flatMap((one) => (one.kind === 'manifest' ? one.kubernetes : []));
  const fleet = fleetOf(kubernetesPieces(trees.map((tree, i) => ({ tree, file: `${i}.yaml` }))), [], {
    advertised: null,
    pools: [],
  });
  const { user, system } = process.cpuUsage(before);
  const tookMs = (user + system) / 1000;
  assert.equal(fleet.nodes.length, 5000);
  assert.ok(tookMs < 5000, `took ${tookMs} ms`);
});

test('nodes with one name get their numbers from files and lines, not from the order in which they were given', () => {
  const objectsOf = (version: string, file: string): KubeObject[] => {
    const found = classify(deployment('d', ENGINE.replace('v0.5.18', `v${version}`)));
    assert.equal(found.kind, 'manifest');
    return found.kind === 'manifest' ? found.kubernetes.map((tree) => ({ tree, file })) : [];
  };
  const given = [objectsOf('0.5.18', 'a.yaml'), objectsOf('0.5.23', 'b.yaml')];
  const named = (all: readonly (readonly KubeObject[])[]): string[] =>
    fleetOf(all.flatMap(kubernetesPieces), [], { advertised: null, pools: [] })
      .nodes.map(({ name, version }) => `${name} ${version?.text}`)
      .sort();
  assert.deepEqual(named(given), ['d 0.5.18', 'd-2 0.5.23']);
  assert.deepEqual(named([...given].reverse()), ['d 0.5.18', 'd-2 0.5.23']);
});
