/** A cache of answers, whole and streamed: the same request of the same account is answered again without the model, for a while. */
import { createHash } from 'node:crypto';
import { type Answer, definePlugin, duration, type Exchange, type Outcome, size, z } from 'model-gateway';
import { call, caller, servedBy, serveWithoutAttempt, spendGuard, type Usage, usageReport } from 'model-gateway/domain';

interface Entry {
  readonly answer: Pick<Answer, 'status' | 'headers'>;
  readonly body: Uint8Array;
  readonly usage: Usage;
  readonly endsAt: number;
}

export default definePlugin({
  name: 'cache',
  config: z.strictObject({
    keep: duration().prefault('10m').describe('How long an answer is given again.'),
    memory: size().prefault('16MB').describe('Memory for answers; the oldest are forgotten first.'),
    percent: z.int().min(0).max(100).default(10).describe('What a repeated answer costs, in percent of the first.'),
  }),
  requires: [call],
  // `spendGuard` is billing's: with billing in the list the cache stands below it, and is charged for as it says.
  optional: [caller, spendGuard],
  sets: [servedBy],
  requiresAtEnd: [usageReport],
  setup(host, { keep, memory, percent }) {
    const entries = new Entries(memory);
    const price = percent === 0 ? 'free' : { ratio: { numerator: BigInt(percent), denominator: 100n } };
    return {
      async handle(exchange, next) {
        if (!exchange.get(call).billable) return next();
        const key = keyOf(exchange, exchange.find(caller)?.accountId);
        const known = entries.get(key, host.clock.monotonic());
        if (known !== undefined) {
          serveWithoutAttempt(exchange, { name: 'cache', usage: known.usage, price });
          return { ...known.answer, headers: { ...known.answer.headers, 'x-cache': 'hit' }, body: known.body };
        }
        const answer = await next();
        if (answer.status !== 200) return answer;
        const copy = new Copy(memory);
        // Only now it is known whether the answer has ended well: a stream may break off, or end with an error event.
        exchange.defer((outcome) => {
          const report = exchange.find(usageReport);
          const body = copy.whole;
          if (!endedWell(outcome) || report?.terminal !== true || body === undefined) return;
          const { status, headers } = answer;
          entries.set(key, {
            answer: { status, headers },
            body,
            usage: report.usage,
            endsAt: host.clock.monotonic() + keep,
          });
        });
        return { ...answer, body: copied(answer.body, copy) };
      },
    };
  },
});

function endedWell({ kind, error }: Outcome): boolean {
  return kind === 'complete' && error === undefined;
}

/** The body, which is copied as it passes. */
function copied(body: Answer['body'], copy: Copy): Answer['body'] {
  if (typeof body !== 'string' && !(body instanceof Uint8Array)) return passing(body, copy);
  copy.add(Buffer.from(body));
  return body;
}

async function* passing(body: AsyncIterable<Uint8Array>, copy: Copy): AsyncGenerator<Uint8Array> {
  for await (const chunk of body) {
    copy.add(chunk);
    yield chunk;
  }
}

/** A copy of a body up to so many bytes; of a larger one nothing. */
class Copy {
  readonly #most: number;
  #chunks: Uint8Array[] = [];
  #bytes = 0;

  constructor(most: number) {
    this.#most = most;
  }

  add(chunk: Uint8Array): void {
    this.#bytes += chunk.length;
    if (this.#bytes <= this.#most) this.#chunks.push(chunk);
    else this.#chunks = [];
  }

  get whole(): Uint8Array | undefined {
    return this.#bytes <= this.#most ? Buffer.concat(this.#chunks) : undefined;
  }
}

class Entries {
  readonly #all = new Map<string, Entry>();
  readonly #memory: number;
  #bytes = 0;

  constructor(memory: number) {
    this.#memory = memory;
  }

  get(key: string, at: number): Entry | undefined {
    const entry = this.#all.get(key);
    return entry !== undefined && entry.endsAt > at ? entry : undefined;
  }

  set(key: string, entry: Entry): void {
    this.#forget(key);
    this.#all.set(key, entry);
    this.#bytes += entry.body.length;
    for (const oldest of this.#all.keys()) {
      if (this.#bytes <= this.#memory) break;
      this.#forget(oldest);
    }
  }

  #forget(key: string): void {
    this.#bytes -= this.#all.get(key)?.body.length ?? 0;
    this.#all.delete(key);
  }
}

function keyOf({ request }: Exchange, account = ''): string {
  const query = request.query.toString();
  return createHash('sha256').update(`${account}\n${request.path}\n${query}\n`).update(request.body).digest('hex');
}
