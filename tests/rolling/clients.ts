/** Clients on connections that they keep: each answer that does not come whole is a drop, and is reported. */
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import type { Acknowledged } from '../kill/clients.ts';

export interface Drop {
  readonly at: string;
  readonly what: string;
  /** The connection had been used before. */
  readonly reused: boolean;
}

/** How long a client may wait for its next question: most ask on at once, others leave their connection idle. */
const idleClientEvery = 4;
const longestIdleMs = 3_000;
/** No answer here takes nearly as long. */
const longestMs = 60_000;

export class RollingClients {
  readonly acknowledged: Acknowledged[] = [];
  readonly drops: Drop[] = [];
  /** Connections that were opened. */
  connections = 0;
  /** Answers that said that their connection ends. */
  farewells = 0;
  readonly #port: number;
  readonly #keys: readonly string[];
  readonly #running: Promise<void>[];
  #stopping = false;

  constructor(port: number, keys: readonly string[], count: number) {
    this.#port = port;
    this.#keys = keys;
    this.#running = Array.from({ length: count }, (_, index) => this.#live(index));
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    await Promise.all(this.#running);
  }

  async #live(index: number): Promise<void> {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const idles = index % idleClientEvery === 0;
    while (!this.#stopping) {
      await this.#send(agent, this.#keys[index % this.#keys.length]!, index);
      if (idles) await pause(randomInt(longestIdleMs));
    }
    agent.destroy();
  }

  async #send(agent: Agent, key: string, index: number): Promise<void> {
    const stream = randomInt(3) === 0;
    const chunks = randomInt(50) === 0 ? 100 : randomInt(1, 20);
    const prompt = `client ${index} [[sandbox: tokens=${randomInt(100, 400)} chunks=${chunks} chunk_delay=${stream ? 20 : 0}ms]]`;
    const body = JSON.stringify({
      model: 'm',
      stream,
      ...(stream ? { stream_options: { include_usage: true } } : {}),
      messages: [{ role: 'user', content: prompt }],
    });
    const requested = request({
      agent,
      host: '127.0.0.1',
      port: this.#port,
      method: 'POST',
      path: '/v1/chat/completions',
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
      },
      signal: AbortSignal.timeout(longestMs),
    });
    try {
      requested.end(body);
      const [answer] = (await once(requested, 'response')) as [IncomingMessage];
      const text = await textOf(answer);
      if (!requested.reusedSocket) this.connections++;
      if (answer.headers.connection === 'close') this.farewells++;
      if (answer.statusCode !== 200) throw new Error(`status ${answer.statusCode}: ${text.slice(0, 200)}`);
      this.acknowledged.push({ requestId: String(answer.headers['x-request-id']), ...countsOf(text) });
    } catch (error) {
      this.drops.push({ at: new Date().toISOString(), what: String(error), reused: requested.reusedSocket });
      await pause(50);
    }
  }
}

async function textOf(answer: IncomingMessage): Promise<string> {
  answer.setEncoding('utf8');
  let text = '';
  for await (const part of answer) text += part;
  return text;
}

/** Throws where the answer is not whole. */
function countsOf(text: string): Omit<Acknowledged, 'requestId'> {
  if (!text.startsWith('{') && !text.trimEnd().endsWith('data: [DONE]')) throw new Error('the stream broke off');
  const frame = text.startsWith('{')
    ? text
    : text
        .split('\n')
        .findLast((line) => line.startsWith('data: {') && line.includes('"usage":{'))!
        .slice('data: '.length);
  const { usage } = JSON.parse(frame) as { usage: { prompt_tokens: number; completion_tokens: number } };
  return { promptTokens: usage.prompt_tokens, completionTokens: usage.completion_tokens };
}
