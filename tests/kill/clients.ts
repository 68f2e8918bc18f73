/** Clients that keep calling a gateway which dies and comes back, and remember every answer that they got whole. */
import { randomInt, randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';

/** An answer that a client holds in its hands: it must have been charged, once, by exactly these counts. */
export interface Acknowledged {
  readonly requestId: string;
  readonly promptTokens: number;
  readonly completionTokens: number;
}

interface Usage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
}

export class Clients {
  readonly acknowledged: Acknowledged[] = [];
  /** Answers that broke off or never came, and requests that their client broke off. */
  broken = 0;
  cancelled = 0;
  /** Idempotency-Keys that were sent, and those whose answer a crash took along. */
  keysSent = 0;
  keysLost = 0;
  readonly #origin: string;
  readonly #keys: readonly string[];
  #running = true;
  readonly #workers: Promise<void>[];

  /** The first half of `keys` belongs to clients that send Idempotency-Keys, and ask again until they are answered. */
  constructor(origin: string, keys: readonly string[], workers: number) {
    this.#origin = origin;
    this.#keys = keys;
    this.#workers = Array.from({ length: workers }, (_, index) => this.#work(index));
  }

  async stop(): Promise<void> {
    this.#running = false;
    await Promise.all(this.#workers);
  }

  async #work(index: number): Promise<void> {
    const account = index % this.#keys.length;
    const isKeyed = account < this.#keys.length / 2;
    for (let turn = 0; this.#running; turn++) {
      const body = bodyOf(`worker ${index} turn ${turn}`);
      if (isKeyed) await this.#sendUntilAnswered(this.#keys[account]!, body);
      else await this.#send(this.#keys[account]!, body).catch(() => this.#noteBroken());
    }
  }

  async #sendUntilAnswered(key: string, body: string): Promise<void> {
    const idempotencyKey = randomUUID();
    this.keysSent++;
    for (let tries = 0; tries < 2_000; tries++) {
      const status = await this.#send(key, body, idempotencyKey).catch(() => this.#noteBroken());
      if (status === 200) return;
      if (status === 'lost') {
        this.keysLost++;
        return;
      }
      if (!this.#running && tries > 100) return;
    }
  }

  /** Breaks a request off at any moment of its life. */
  #soon(): AbortSignal {
    const controller = new AbortController();
    setTimeout(
      () => {
        this.cancelled++;
        controller.abort();
      },
      randomInt(0, 60),
    ).unref();
    return controller.signal;
  }

  async #noteBroken(): Promise<undefined> {
    this.broken++;
    await pause(20);
  }

  /** Throws where the answer broke or was an error. `lost`: it ran, but its answer is gone. */
  async #send(key: string, body: string, idempotencyKey?: string): Promise<200 | 'lost'> {
    const cancels = randomInt(10) === 0;
    const answer = await fetch(`${this.#origin}/v1/chat/completions`, {
      method: 'POST',
      ...(cancels ? { signal: this.#soon() } : {}),
      headers: {
        authorization: `Bearer ${key}`,
        'content-type': 'application/json',
        ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
      },
      body,
    });
    const text = await answer.text();
    if (text.includes('"idempotency_answer_lost"')) return 'lost';
    if (answer.status !== 200) throw new Error(`status ${answer.status}`);
    const usage = text.startsWith('{') ? (JSON.parse(text) as { usage: Usage }).usage : usageOfStream(text);
    this.acknowledged.push({
      requestId: answer.headers.get('x-original-request-id') ?? answer.headers.get('x-request-id')!,
      promptTokens: usage.prompt_tokens,
      completionTokens: usage.completion_tokens,
    });
    return 200;
  }
}

function bodyOf(prompt: string): string {
  const stream = randomInt(3) === 0;
  const directive = stream
    ? `[[sandbox: tokens=${randomInt(5, 60)} chunk_delay=${randomInt(1, 20)}ms]]`
    : `[[sandbox: tokens=${randomInt(5, 400)}]]`;
  return JSON.stringify({
    model: 'm',
    stream,
    ...(stream ? { stream_options: { include_usage: true } } : {}),
    messages: [{ role: 'user', content: `${prompt} ${directive}` }],
  });
}

function usageOfStream(text: string): Usage {
  if (!text.trimEnd().endsWith('data: [DONE]')) throw new Error('the stream broke off');
  const frame = text.split('\n').findLast((line) => line.startsWith('data: {') && line.includes('"usage":{'));
  return (JSON.parse(frame!.slice('data: '.length)) as { usage: Usage }).usage;
}
