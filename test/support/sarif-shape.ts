/** What SARIF 2.1.0 asks of the objects that we write: their fields and no others, as its schema has them. */
import assert from 'node:assert/strict';

type Json = Readonly<Record<string, unknown>>;

function object(value: unknown, path: string, required: readonly string[], optional: readonly string[] = []): Json {
  assert.ok(typeof value === 'object' && value !== null && !Array.isArray(value), `${path} is no object`);
  for (const name of required) assert.ok(Object.hasOwn(value, name), `${path}.${name} is missing`);
  for (const name of Object.keys(value))
    assert.ok([...required, ...optional].includes(name), `${path}.${name} is not known`);
  return value as Json;
}

function list(value: unknown, path: string): readonly unknown[] {
  assert.ok(Array.isArray(value), `${path} is no list`);
  return value;
}

function text(value: unknown, path: string): string {
  assert.ok(typeof value === 'string', `${path} is no text`);
  return value;
}

function message(value: unknown, path: string): void {
  const words = text(object(value, path, ['text']).text, path);
  assert.doesNotMatch(words.replaceAll('{{', '').replaceAll('}}', ''), /[{}]/, `${path}: a brace that is not doubled`);
  assert.doesNotMatch(words, /(?<!\\)(?:\\\\)*[[\]]/, `${path}: a bracket that could be part of a link`);
}

function location(value: unknown, path: string): void {
  const { physicalLocation, logicalLocations } = object(value, path, ['logicalLocations'], ['physicalLocation']);
  for (const logical of list(logicalLocations, path)) {
    object(logical, `${path}.logicalLocations[]`, ['name'], ['fullyQualifiedName', 'kind']);
  }
  if (physicalLocation === undefined) return;
  const physical = object(physicalLocation, path, ['artifactLocation'], ['region']);
  const artifact = object(physical.artifactLocation, path, ['uri'], ['uriBaseId', 'description']);
  const uri = text(artifact.uri, path);
  assert.match(uri, /^(?:file:\/\/\/)?(?:[A-Za-z0-9_.!~*'()/-]|%[0-9A-F]{2})+$/, `${path}: not a plain path: ${uri}`);
  assert.ok(uri.startsWith('file:///') !== Object.hasOwn(artifact, 'uriBaseId'));
  if (artifact.description !== undefined) message(artifact.description, path);
  if (physical.region === undefined) return;
  const { startLine } = object(physical.region, path, ['startLine']);
  assert.ok(Number.isSafeInteger(startLine) && (startLine as number) >= 1, `${path}: a line below 1`);
}

function rule(value: unknown, path: string): string {
  const texts = ['shortDescription', 'fullDescription', 'help'];
  const found = object(value, path, ['id', ...texts], ['name', 'properties']);
  for (const name of texts) message(found[name], `${path}.${name}`);
  const properties = object(found.properties, path, ['tags'], ['security-severity']);
  const score = properties['security-severity'];
  if (score !== undefined) assert.match(text(score, path), /^(?:\d|10)\.\d$/);
  return text(found.id, path);
}

function reference(id: unknown, index: unknown, rules: readonly string[], path: string): void {
  assert.ok(Number.isInteger(index) && rules[index as number] === id, `${path}: its rule is not at its index`);
}

function result(value: unknown, path: string, rules: readonly string[]): void {
  const required = ['ruleId', 'ruleIndex', 'kind', 'level', 'message', 'locations', 'partialFingerprints'];
  const found = object(value, path, required, ['suppressions', 'properties']);
  reference(found.ruleId, found.ruleIndex, rules, path);
  assert.ok(['error', 'warning', 'note', 'none'].includes(text(found.level, path)));
  message(found.message, `${path}.message`);
  const locations = list(found.locations, path);
  assert.equal(locations.length, 1);
  for (const one of locations) location(one, `${path}.locations[]`);
  const prints = found.partialFingerprints as Json;
  for (const print of Object.values(prints)) assert.match(text(print, path), /^[0-9a-f]{32}(?::1)?$/);
  for (const one of list(found.suppressions ?? [], path)) {
    const suppression = object(one, path, ['kind'], ['status', 'justification']);
    assert.ok(['inSource', 'external'].includes(text(suppression.kind, path)));
  }
}

function invocation(value: unknown, path: string, rules: readonly string[]): void {
  const found = object(value, path, ['executionSuccessful'], ['toolExecutionNotifications', 'endTimeUtc']);
  list(found.toolExecutionNotifications, path).forEach((one, index) => {
    const at = `${path}.toolExecutionNotifications[${index}]`;
    const note = object(one, at, ['message'], ['level', 'associatedRule', 'locations']);
    message(note.message, at);
    const { id, index: place } = object(note.associatedRule, at, ['id', 'index']);
    reference(id, place, rules, at);
    for (const place of list(note.locations ?? [], at)) location(place, at);
  });
}

/** Throws at the first thing that is not as the standard has it. */
export function assertSarif(json: string): void {
  const log = object(JSON.parse(json), 'log', ['version', 'runs', '$schema']);
  assert.equal(log.version, '2.1.0');
  const runs = list(log.runs, 'runs');
  assert.equal(runs.length, 1);
  const optional = ['automationDetails', 'columnKind', 'originalUriBaseIds', 'invocations', 'properties'];
  const run = object(runs[0], 'run', ['tool', 'results'], optional);
  const driver = object(object(run.tool, 'tool', ['driver']).driver, 'driver', ['name', 'version', 'rules']);
  const rules = list(driver.rules, 'rules').map((one, index) => rule(one, `rules[${index}]`));
  assert.equal(new Set(rules).size, rules.length, 'a rule stands twice');
  for (const one of list(run.invocations, 'invocations')) invocation(one, 'invocation', rules);
  for (const [index, one] of list(run.results, 'results').entries()) result(one, `results[${index}]`, rules);
}
