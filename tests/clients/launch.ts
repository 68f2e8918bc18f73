/** Starts a coding client headless, in a home of its own, with a proxy that notices whatever it wants from elsewhere. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { writeSettings } from '../../core/process/connect/connect.ts';

export interface Client {
  readonly name: string;
  /** The client's own protocol, and the model that it asks for. */
  readonly protocol: 'chat' | 'messages' | 'responses';
  readonly model: string;
  readonly usesWebSocket: boolean;
  /** It asks for calls that follow their schemas, as Gemini alone can be asked: `tool_choice: "validated"`. */
  readonly validates?: true;
  /** Command line and environment of one headless turn; writes its configuration into `home`. */
  prepare(turn: Turn): Promise<{ words: string[]; environment: Record<string, string> }>;
  /** The final answer, out of what it printed. */
  answerIn(stdout: string): string;
}

export interface Turn {
  readonly home: string;
  readonly prompt: string;
  readonly origin: string;
  readonly key: string;
}

export interface Finished {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** Addresses off this machine that it tried to reach, by a proxy that says no. */
  readonly strayed: readonly string[];
  readonly tookMs: number;
}

/** A connection stays with one process; over HTTP each request may reach another one of a fleet. */
const isFleet = process.env['CLIENTS_ON'] === 'fleet';
const longestTurnMs = 60_000;

const claudeModel = 'claude-opus-5-5';

/** It and the next one have the settings that `connect` writes. */
const claudeCode: Client = {
  name: 'Claude Code',
  protocol: 'messages',
  model: claudeModel,
  usesWebSocket: false,
  async prepare({ home, prompt, origin, key }) {
    writeSettings('claude-code', { base: origin, key, model: claudeModel, small: claudeModel, name: 'gateway' }, home);
    return {
      words: [
        process.env['CLAUDE_CODE_BINARY']!,
        '-p',
        prompt,
        '--output-format',
        'json',
        '--allowedTools',
        'Read',
        'Bash(cat:*)',
      ],
      environment: {
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      },
    };
  },
  answerIn: (stdout) => (JSON.parse(stdout) as { result: string }).result,
};

const codex = (name: string, model: string): Client => ({
  name,
  protocol: 'responses',
  model,
  usesWebSocket: !isFleet,
  async prepare({ home, prompt, origin, key }) {
    await mkdir(join(home, '.codex'));
    const file = join(home, '.codex/config.toml');
    await writeFile(file, codexConfig);
    writeSettings('codex', { base: origin, key, model, small: model, name: 'gateway' }, home);
    // Where WebSockets are offered, the client uses them.
    await appendFile(file, `supports_websockets = ${!isFleet}\n`);
    const words = ['exec', '--skip-git-repo-check', '--dangerously-bypass-approvals-and-sandbox', prompt];
    return { words: [process.env['CODEX_BINARY']!, ...words], environment: {} };
  },
  // Its answer alone goes to the standard output; what it does meanwhile goes to the other.
  answerIn: (stdout) => stdout,
});

/** Plugins would be fetched from elsewhere. */
const codexConfig = `check_for_update_on_startup = false
[analytics]
enabled = false
[features]
plugins = false
`;

/** Offline it asks its provider alone: no account, no update. Its program unpacks itself once, beside where it is installed. */
const copilot = (name: string, wire: Pick<Client, 'protocol' | 'model' | 'usesWebSocket' | 'validates'>): Client => ({
  name,
  ...wire,
  async prepare({ prompt, origin, key }) {
    const binary = process.env['COPILOT_BINARY']!;
    return {
      words: [binary, '-p', prompt, '--silent', '--allow-all-tools', '--no-auto-update'],
      environment: {
        COPILOT_OFFLINE: 'true',
        COPILOT_CACHE_HOME: join(dirname(binary), 'unpacked'),
        COPILOT_PROVIDER_BASE_URL: `${origin}/v1`,
        COPILOT_PROVIDER_API_KEY: key,
        COPILOT_PROVIDER_WIRE_API: wire.protocol === 'responses' ? 'responses' : 'completions',
        COPILOT_PROVIDER_TRANSPORT: wire.usesWebSocket ? 'websockets' : 'http',
        COPILOT_MODEL: wire.model,
      },
    };
  },
  answerIn: (stdout) => stdout,
});

/** With newer models Codex declares its tools in namespaces within the input, and works by scripts: a tool of free text. */
export const clients: readonly Client[] = [
  claudeCode,
  codex('Codex CLI', 'gpt-5.5'),
  codex('Codex CLI with scripts', 'gpt-6.1-sol'),
  copilot('Copilot CLI', { protocol: 'chat', model: 'gemini-3.5-pro', usesWebSocket: false, validates: true }),
  copilot('Copilot CLI in responses', { protocol: 'responses', model: 'gpt-5.5', usesWebSocket: !isFleet }),
];

/** One turn in `directory`, with nothing of this process's environment but the path. */
export async function run(client: Client, directory: string, turn: Omit<Turn, 'home'>): Promise<Finished> {
  const home = await mkdtemp(join(tmpdir(), 'client-home-'));
  const proxy = await startRefusingProxy();
  const startedAt = performance.now();
  try {
    const { words, environment } = await client.prepare({ ...turn, home });
    const [command, ...rest] = words;
    const child = spawn(command!, rest, {
      cwd: directory,
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: longestTurnMs,
      killSignal: 'SIGKILL',
      env: {
        PATH: process.env['PATH']!,
        HOME: home,
        TMPDIR: home,
        LANG: 'C.UTF-8',
        ...proxy.environment,
        ...environment,
      },
    });
    const printed = { stdout: '', stderr: '' };
    child.stdout.on('data', (chunk) => (printed.stdout += chunk));
    child.stderr.on('data', (chunk) => (printed.stderr += chunk));
    const [exitCode] = (await once(child, 'close')) as [number | null];
    return { exitCode, ...printed, strayed: proxy.requested, tookMs: Math.round(performance.now() - startedAt) };
  } finally {
    proxy.stop();
    await rm(home, { recursive: true, force: true, maxRetries: 3 });
  }
}

/** Notes what it is asked for and refuses it. */
async function startRefusingProxy() {
  const requests: string[] = [];
  const server = createServer((incoming, outgoing) => {
    requests.push(`${incoming.method} ${incoming.url}`);
    outgoing.writeHead(403).end();
  });
  server.on('connect', (incoming, socket) => {
    requests.push(`CONNECT ${incoming.url}`);
    socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const environment: Record<string, string> = { NO_PROXY: '127.0.0.1,localhost', no_proxy: '127.0.0.1,localhost' };
  for (const name of ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY']) {
    environment[name] = address;
    environment[name.toLowerCase()] = address;
  }
  const stop = () => {
    server.closeAllConnections();
    server.close();
  };
  return { requested: requests, environment, stop };
}
