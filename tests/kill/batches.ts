/** Clients that order batches from a gateway which dies and comes back, and what must hold of them between vendor and ledger. */
import { randomInt } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { type BatchVendor, used } from '../plugins/batches/native/stand-in.ts';

const endpoint = '/v1/chat/completions';
const finalStates = new Set(['completed', 'failed', 'expired', 'cancelled']);

interface Batch {
  readonly id: string;
  readonly status: string;
  readonly request_counts: { readonly total: number; readonly completed: number; readonly failed: number };
}

/** What a comparison has found. */
export interface Findings {
  readonly account: string[];
  readonly violations: string[];
}

/** A charge of a line that a vendor's batch has made. */
export interface BulkCharge {
  readonly estimated: boolean;
  readonly tokens: number;
}

export class BatchClients {
  /** Orders that were acknowledged, and cancellations. */
  ordered = 0;
  cancelled = 0;
  readonly #origin: string;
  readonly #keys: readonly string[];
  readonly #workers: Promise<void>[];
  #running = true;

  /** Half of the workers order batches that the vendor makes itself, the others batches of calls. */
  constructor(origin: string, keys: readonly string[], workers: number) {
    this.#origin = origin;
    this.#keys = keys;
    this.#workers = Array.from({ length: workers }, (_, index) =>
      this.#work(keys[index % keys.length]!, index % 2 === 0 ? 'bulk' : 'm'),
    );
  }

  /** Orders nothing more. */
  async stop(): Promise<void> {
    this.#running = false;
    await Promise.all(this.#workers);
  }

  /** Waits until every batch has ended; resolves with those that have not, and those whose lines have not all an end. */
  async unfinished(withinMs: number): Promise<string[]> {
    for (const deadline = performance.now() + withinMs; ; ) {
      const batches = (await Promise.all(this.#keys.map((key) => this.#list(key)))).flat();
      const open = batches.filter(({ status }) => !finalStates.has(status)).map(({ id }) => `${id} has not ended`);
      if (open.length > 0 && performance.now() < deadline) {
        await pause(200);
        continue;
      }
      const torn = batches.filter(({ request_counts: { total, completed, failed } }) => completed + failed !== total);
      return [...open, ...(open.length > 0 ? [] : torn.map(({ id }) => `${id} has lines without an end`))];
    }
  }

  async #work(key: string, model: string): Promise<void> {
    while (this.#running) {
      await this.#order(key, model).catch(() => {});
      await pause(randomInt(100, 600));
    }
  }

  async #order(key: string, model: string): Promise<void> {
    const messages = [{ role: 'user', content: `A line [[sandbox: tokens=${randomInt(5, 40)}]]` }];
    const lines = Array.from({ length: randomInt(1, 12) }, (_, index) =>
      JSON.stringify({ custom_id: `line-${index}`, method: 'POST', url: endpoint, body: { model, messages } }),
    );
    const form = new FormData();
    form.set('purpose', 'batch');
    form.set('file', new Blob([lines.join('\n')]), 'input.jsonl');
    const file = (await this.#send(key, 'POST', '/v1/files', form)) as { id: string };
    const order = { input_file_id: file.id, endpoint, completion_window: '24h' };
    const { id } = (await this.#send(key, 'POST', '/v1/batches', order)) as Batch;
    this.ordered += 1;
    if (randomInt(6) > 0) return;
    await pause(randomInt(0, 2_000));
    await this.#send(key, 'POST', `/v1/batches/${id}/cancel`, {});
    this.cancelled += 1;
  }

  async #list(key: string): Promise<Batch[]> {
    const found: Batch[] = [];
    for (let after = ''; ; ) {
      const page = (await this.#send(key, 'GET', `/v1/batches?limit=100${after}`)) as {
        data: Batch[];
        has_more: boolean;
      };
      found.push(...page.data);
      if (!page.has_more) return found;
      after = `&after=${found.at(-1)!.id}`;
    }
  }

  async #send(key: string, method: string, path: string, body?: FormData | object): Promise<unknown> {
    const isForm = body instanceof FormData;
    const headers = { authorization: `Bearer ${key}`, ...(isForm ? {} : { 'content-type': 'application/json' }) };
    const content = body === undefined ? {} : { body: isForm ? body : JSON.stringify(body) };
    const answer = await fetch(this.#origin + path, { method, headers, ...content });
    if (!answer.ok) throw new Error(`status ${answer.status}: ${await answer.text()}`);
    return answer.json();
  }
}

/** Each line that the vendor has made in a batch was charged once, by its own usage. */
export function compareBatches(
  { ordered, cancelled }: Pick<BatchClients, 'ordered' | 'cancelled'>,
  unfinished: readonly string[],
  charges: readonly BulkCharge[],
  vendor: Pick<BatchVendor, 'made' | 'faults' | 'batches'>,
): Findings {
  const violations = [...unfinished.map((text) => `batch ${text}`), ...vendor.faults.map((text) => `batches: ${text}`)];
  if (charges.length !== vendor.made)
    violations.push(`${charges.length} lines of batches were charged, the vendor made ${vendor.made}`);
  const wrong = charges.filter(({ estimated, tokens }) => estimated || tokens !== used.input + used.output);
  if (wrong.length > 0) violations.push(`${wrong.length} lines of batches were not charged by their own usage`);
  const account = [
    `${ordered} batches were acknowledged, ${cancelled} cancelled; the vendor made ${vendor.made} lines in ${vendor.batches.size} batches of its own, ${charges.length} were charged`,
  ];
  return { account, violations };
}
