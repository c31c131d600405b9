/** Clients as they are published, pointed at the gateway by nothing but a URL and a key. */
import { spawn } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { startLlama } from '../engines.js';
import { ROOT, type Recipe } from '../folder.js';
import { type Gateway, startGateway } from '../gateway.js';
import { Markers } from '../prompts.js';
import { CouldNotRun } from '../could-not-run.js';
import type { Bench, Scenario } from '../scenario.js';

const POOL_TOKENS = 4096;
const OVER_TOKENS = 6000;
const SCRIPTS = join(ROOT, 'test', 'engines', 'clients');
const PYTHON: Recipe = { name: 'clients-python', packages: ['openai==3.57.0', 'litellm==1.110.2'], overrides: [] };
const RUN_MS_MAX = 600_000;

/** What a script prints of one call. */
interface Called {
  readonly client: string;
  readonly version: string;
  readonly how: string;
  readonly ok: boolean;
  readonly tokens: number | null;
  readonly error: string | null;
  readonly status?: number | null;
}

export const clients: Scenario = {
  name: 'clients',
  title: 'published clients chat, stream, and are told of an over-long prompt as they expect it',
  engines: 'openai (JavaScript and Python), AI SDK, LiteLLM; llama-server behind the gateway',
  async run(bench) {
    const python = await bench.folder.environment(PYTHON, bench.say);
    const javascript = await javascriptFolder(bench);
    const engine = await startLlama(bench, { poolTokens: POOL_TOKENS, slots: 4 });
    if (bench.sides.includes('through')) {
      const gateway = await startGateway(bench, [engine.url]);
      const scripts: readonly (readonly [string, string, string])[] = [
        [process.execPath, join(javascript, 'javascript-clients.mjs'), javascript],
        [join(python, 'bin', 'python'), join(SCRIPTS, 'python_clients.py'), SCRIPTS],
      ];
      for (const [command, script, folder] of scripts) await runScript(bench, gateway, command, script, folder);
      await gateway.stop();
    }
  },
};

/** The script has to lie beside its packages. */
async function javascriptFolder(bench: Bench): Promise<string> {
  const folder = bench.folder.at('clients-javascript');
  mkdirSync(folder, { recursive: true });
  const lock = join(folder, 'package-lock.json');
  const wanted = readFileSync(join(SCRIPTS, 'package-lock.json'), 'utf8');
  const isThere = existsSync(join(folder, 'node_modules')) && existsSync(lock) && readFileSync(lock, 'utf8') === wanted;
  for (const name of ['package.json', 'package-lock.json', 'javascript-clients.mjs']) {
    copyFileSync(join(SCRIPTS, name), join(folder, name));
  }
  if (!isThere) {
    bench.say('installing the JavaScript clients');
    await lines('npm', ['ci', '--no-audit', '--no-fund', '--silent'], folder, {});
  }
  return folder;
}

async function runScript(
  bench: Bench,
  gateway: Gateway,
  command: string,
  script: string,
  folder: string,
): Promise<void> {
  const marker = new Markers().next('acme').text;
  const args = [script, gateway.url, marker, String(OVER_TOKENS)];
  for (const line of await lines(command, args, folder, { CLIENT_KEY: gateway.key('acme') })) {
    const { client, version, how, ok, tokens, error, status } = JSON.parse(line) as Called;
    const isOver = how.startsWith('over-long');
    const said = error === null ? 'answered' : `${error}${status === null || status === undefined ? '' : ` ${status}`}`;
    bench.row({
      side: 'through',
      sent: `${client} ${version}: ${how}${isOver ? `, ${OVER_TOKENS} tokens` : ''}`,
      cameBack: `${said}${ok ? ', right' : ''}${tokens === null || tokens === undefined ? '' : `, prompt tokens ${tokens}`}`,
      heldBack: isOver && !ok ? 'the prompt' : '',
      isAsExpected: isOver ? error !== null && (status === 400 || status === undefined) : ok,
    });
  }
}

/** Standard output of a command that ends well. Throws `CouldNotRun`. */
function lines(command: string, args: readonly string[], cwd: string, variables: NodeJS.ProcessEnv): Promise<string[]> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...variables },
      timeout: RUN_MS_MAX,
    });
    let out = '';
    let err = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      out += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      err += text;
    });
    child.on('error', ({ message }) => reject(new CouldNotRun(`${command}: ${message}`)));
    child.on('close', (code) => {
      if (code === 0) resolve(out.split('\n').filter((line) => line.startsWith('{')));
      else reject(new CouldNotRun(`${command} ${args[0] ?? ''} ended with ${code}: ${err.trim().slice(-500)}`));
    });
  });
}
