/** Clients that keep calling a gateway which dies and comes back, and remember every answer that they got whole. */
import { randomInt } from 'node:crypto';
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
  /** Answers that broke off or never came. */
  broken = 0;
  readonly #origin: string;
  readonly #keys: readonly string[];
  #running = true;
  readonly #workers: Promise<void>[];

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
    for (let turn = 0; this.#running; turn++) {
      try {
        await this.#call(this.#keys[index % this.#keys.length]!, `worker ${index} turn ${turn}`);
      } catch {
        this.broken++;
        await pause(20);
      }
    }
  }

  async #call(key: string, prompt: string): Promise<void> {
    const stream = randomInt(3) === 0;
    const directive = stream
      ? `[[sandbox: tokens=${randomInt(5, 60)} chunk_delay=${randomInt(1, 20)}ms]]`
      : `[[sandbox: tokens=${randomInt(5, 400)}]]`;
    const answer = await fetch(`${this.#origin}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        model: 'm',
        stream,
        ...(stream ? { stream_options: { include_usage: true } } : {}),
        messages: [{ role: 'user', content: `${prompt} ${directive}` }],
      }),
    });
    const text = await answer.text();
    if (answer.status !== 200) throw new Error(`status ${answer.status}`);
    const usage = stream ? usageOfStream(text) : (JSON.parse(text) as { usage: Usage }).usage;
    this.acknowledged.push({
      requestId: answer.headers.get('x-request-id')!,
      promptTokens: usage.prompt_tokens,
      completionTokens: usage.completion_tokens,
    });
  }
}

function usageOfStream(text: string): Usage {
  if (!text.trimEnd().endsWith('data: [DONE]')) throw new Error('the stream broke off');
  const frame = text.split('\n').findLast((line) => line.startsWith('data: {') && line.includes('"usage":{'));
  return (JSON.parse(frame!.slice('data: '.length)) as { usage: Usage }).usage;
}
