/** Open WebUI as a process of its own: signed in as its one user, with the gateway as its connection, and nothing to download. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

export interface OpenWebUi {
  /** A GET without a body, else a POST. */
  call(path: string, body?: unknown): Promise<Response>;
  stop(): Promise<void>;
}

export interface Connection {
  readonly base: string;
  readonly key: string;
  readonly imageKey: string;
  readonly imageModel: string;
}

const longestStartMs = 300_000;

export async function startOpenWebUi(connection: Connection): Promise<OpenWebUi> {
  const program = process.env['OPEN_WEBUI_BINARY']!;
  const home = await mkdtemp(join(tmpdir(), 'open-webui-'));
  const port = await freePort();
  const child = spawn(program, ['serve', '--host', '127.0.0.1', '--port', String(port)], {
    stdio: 'ignore',
    env: environmentOf(connection, home, program),
  });
  const stop = async () => {
    if (child.exitCode === null && child.kill('SIGKILL')) await once(child, 'exit');
    await rm(home, { recursive: true, force: true, maxRetries: 3 });
  };
  const origin = `http://127.0.0.1:${port}`;
  const send = (path: string, body: unknown, token: string) =>
    fetch(`${origin}${path}`, {
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
    });
  try {
    const isUp = () =>
      send('/health', undefined, '').then(
        ({ ok }) => ok,
        () => false,
      );
    const until = performance.now() + longestStartMs;
    while (!(await isUp())) {
      assert.ok(child.exitCode === null && performance.now() < until, 'Open WebUI does not start');
      await pause(250);
    }
    const { token } = (await (await send('/api/v1/auths/signin', { email: '', password: '' }, '')).json()) as {
      token: string;
    };
    return { call: (path, body) => send(path, body, token), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** What it wants from elsewhere goes to a port that refuses. */
function environmentOf({ base, key, imageKey, imageModel }: Connection, home: string, program: string) {
  const refused = 'http://127.0.0.1:9';
  return {
    PATH: `${dirname(program)}:${process.env['PATH']}`,
    HOME: home,
    DATA_DIR: home,
    HTTP_PROXY: refused,
    HTTPS_PROXY: refused,
    NO_PROXY: '127.0.0.1,localhost',
    WEBUI_SECRET_KEY: 'a secret of one test',
    WEBUI_AUTH: 'false',
    ENABLE_OLLAMA_API: 'false',
    OPENAI_API_BASE_URL: base,
    OPENAI_API_KEY: key,
    ENABLE_IMAGE_GENERATION: 'true',
    IMAGE_GENERATION_ENGINE: 'openai',
    IMAGE_GENERATION_MODEL: imageModel,
    IMAGE_SIZE: '1024x1024',
    IMAGES_OPENAI_API_BASE_URL: base,
    IMAGES_OPENAI_API_KEY: imageKey,
    OFFLINE_MODE: 'true',
    HF_HUB_OFFLINE: '1',
    RAG_EMBEDDING_ENGINE: 'openai',
    ANONYMIZED_TELEMETRY: 'false',
  };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
