/** The vendors of tasks: one paints at once, one films for a while; what each does is drawn when an order reaches it. */
import { UpstreamError } from '../../core/contract/upstream-failures.ts';
import { objectOf, textOf } from '../../core/json/json.ts';
import type { Usage } from '../../plugins/common/domain/usage.ts';
import type { MediaAdapter, Order, Step, VendorAnswer, VendorRequest } from '../../plugins/common/media/adapters.ts';
import { failed, readObject, unreadable } from '../../plugins/common/media/outcome.ts';
import type { Vendors } from '../../plugins/task-store/engine/vendor.ts';
import type { Chance } from './chance.ts';
import type { Life, Schedule } from './schedule.ts';
import type { Counts } from './tariff.ts';

/** What a vendor was asked to make, as it has it on its bill. */
interface Job {
  readonly name: string;
  readonly counts: Counts;
  /** Virtual time from which it cannot be taken back, and at which it is done; Infinity: it sticks. */
  readonly startsAt: number;
  readonly doneAt: number;
  readonly fails: boolean;
  /** The vendor knows nothing of it any more when it is asked, though it makes it. */
  readonly isForgotten: boolean;
  /** The file lies in the answer. */
  readonly isWhole: boolean;
  isTakenBack: boolean;
  /** Its maker has reported of it, to a process that listened. */
  isHeard: boolean;
}

export interface StudioOptions {
  readonly schedule: Schedule;
  readonly chance: Chance;
  /** Percentage of requests that go wrong in one way or another. */
  readonly troublePercent: number;
  /** An order has come, by its prompt. `mayRun`: something may be made of it. */
  readonly onOrder: (name: string, mayRun: boolean) => void;
}

/** What stands on a vendor's bill for one call. */
export interface Billed {
  readonly counts: Counts;
  /** A client has received it. */
  readonly isHeard: boolean;
}

type Word = { readonly afterMs: number; readonly answer: VendorAnswer | UpstreamError; readonly job?: Job };

const refusals = [429, 429, 503, 529, 400, 401, 403] as const;
const breaks = [500, 502, 504, undefined, undefined] as const;

export class Studio {
  readonly #options: StudioOptions;
  readonly #jobs = new Map<string, Job>();
  readonly #byName = new Map<string, Job[]>();
  /** By order: calls of which the one that made them does not know what became. */
  readonly #brokenOff = new Map<string, number>();

  constructor(options: StudioOptions) {
    this.#options = options;
  }

  /** What stands on the vendors' bills for an order. */
  billOf(name: string): Billed[] {
    const { now } = this.#options.schedule;
    const made = (this.#byName.get(name) ?? []).filter((job) => job.doneAt <= now && !job.fails && !job.isTakenBack);
    return made.map(({ counts, isHeard }) => ({ counts, isHeard }));
  }

  /** Calls for an order that broke off, as those see it who made them. */
  brokenOf(name: string): number {
    return this.#brokenOff.get(name) ?? 0;
  }

  /** One process's way to the vendors. What it has sent arrives whether it lives or not. */
  vendorsOf(life: Life): Vendors {
    return {
      call: (wanted, _target, _timeoutMs, signal) => this.#send(wanted, life, signal),
      open: () => Promise.reject(new Error('no one looks on here')),
      close: async () => {},
    };
  }

  #send(wanted: VendorRequest, life: Life, signal: AbortSignal): Promise<VendorAnswer> {
    const { schedule, chance } = this.#options;
    return new Promise((resolve, reject) => {
      const name = textOf(wanted.body?.['name']);
      const brokeOff = () => name !== undefined && this.#brokenOff.set(name, this.brokenOf(name) + 1);
      const stopped = () => {
        brokeOff();
        reject(new UpstreamError('sent', 'the gateway stops'));
      };
      signal.addEventListener('abort', stopped, { once: true });
      schedule.after(chance.delay(5), undefined, 'vendor is asked', () => {
        const { afterMs, answer, job } = this.#hear(wanted);
        schedule.after(afterMs, life, 'vendor answers', () => {
          if (signal.aborted) return;
          signal.removeEventListener('abort', stopped);
          if (mayHaveRun(answer)) brokeOff();
          else if (job !== undefined) job.isHeard = true;
          if (answer instanceof UpstreamError) reject(answer);
          else resolve(answer);
        });
      });
    });
  }

  #hear(wanted: VendorRequest): Word {
    const { chance, troublePercent } = this.#options;
    const roll = chance.below(100);
    if (roll * 4 < troublePercent)
      return { afterMs: chance.delay(20), answer: new UpstreamError('connect', 'refused') };
    const isBad = roll < troublePercent;
    if (wanted.method === 'POST') return this.#order(wanted, isBad);
    const id = wanted.path.slice(1);
    const word = wanted.method === 'GET' ? this.#report(id) : this.#takeBack(id);
    if (!isBad) return { afterMs: chance.delay(20), answer: word };
    // It was heard, and its answer is lost.
    return { afterMs: chance.delay(60), answer: this.#broken() };
  }

  #order({ body }: VendorRequest, isBad: boolean): Word {
    const { chance, onOrder, schedule } = this.#options;
    const { name, input, output, films } = body as { name: string; input: number; output: number; films: boolean };
    if (isBad && chance.oneIn(2)) {
      onOrder(name, false);
      const status = chance.pick(refusals);
      const headers = chance.oneIn(2) ? { 'retry-after': String(chance.between(0, 2)) } : {};
      return { afterMs: chance.delay(30), answer: answerOf(status, { error: { message: 'no' } }, headers) };
    }
    onOrder(name, true);
    // Slow now and then: the one that sent it may have lost the task meanwhile.
    const workMs = chance.oneIn(8) ? chance.delay(900) : chance.delay(60);
    const startsAt = schedule.now + (films ? chance.delay(150) : 0);
    const sticks = films && chance.oneIn(15);
    const job: Job = {
      name,
      counts: { input: chance.below(input + 1), output: chance.below(output + 1) },
      startsAt,
      doneAt: sticks ? Number.POSITIVE_INFINITY : startsAt + workMs,
      fails: isBad ? chance.oneIn(2) : films && chance.oneIn(12),
      isForgotten: films && chance.oneIn(30),
      isWhole: chance.oneIn(2),
      isTakenBack: false,
      isHeard: false,
    };
    const id = `job-${this.#jobs.size + 1}`;
    this.#jobs.set(id, job);
    this.#byName.set(name, [...(this.#byName.get(name) ?? []), job]);
    // No one hears of it, after a while: it may be made all the same.
    if (isBad) return { afterMs: workMs + chance.delay(300), answer: this.#broken() };
    if (films) return { afterMs: chance.delay(40), answer: answerOf(200, { task: id }), job };
    return { afterMs: workMs, answer: answerOf(200, made(job)), job };
  }

  #broken(): VendorAnswer | UpstreamError {
    const status = this.#options.chance.pick(breaks);
    return status === undefined ? new UpstreamError('sent', 'reset') : answerOf(status, { error: {} });
  }

  /** As often as it is asked; what was done once stays so. */
  #report(id: string): VendorAnswer {
    const { now } = this.#options.schedule;
    const job = this.#jobs.get(id)!;
    if (job.isForgotten) return answerOf(404, { error: { message: 'no such task' } });
    if (job.isTakenBack || (job.fails && job.doneAt <= now)) return answerOf(200, { state: 'failed' });
    if (job.doneAt <= now) return answerOf(200, made(job));
    return answerOf(200, { state: now < job.startsAt ? 'queued' : 'running' });
  }

  #takeBack(id: string): VendorAnswer {
    const job = this.#jobs.get(id)!;
    if (this.#options.schedule.now >= job.startsAt) return answerOf(409, { error: {} });
    job.isTakenBack = true;
    return answerOf(200, {});
  }
}

function mayHaveRun(answer: VendorAnswer | UpstreamError): boolean {
  return answer instanceof UpstreamError ? answer.phase !== 'connect' : breaks.includes(answer.status as 500);
}

function answerOf(status: number, json: unknown, headers: VendorAnswer['headers'] = {}): VendorAnswer {
  return { status, headers, json };
}

function made({ name, counts, isWhole }: Job): object {
  const file = isWhole ? { bytes: 'aGVsbG8=' } : { url: `http://127.0.0.1:9/${name}` };
  return { state: 'done', made: counts, file };
}

// ------------------------------------------------------------------------------------------------------- their protocols

function stepOf(answer: VendorAnswer, vendorId: string): Step {
  const read = readObject(answer);
  if ('failed' in read) return read.failed;
  const { json } = read;
  const state = textOf(json['state']);
  if (state === 'queued' || state === 'running') return { state, vendorId };
  if (state === 'failed') return failed('generation_failed');
  const file = objectOf(json['file']);
  const [url, base64] = [textOf(file?.['url']), textOf(file?.['bytes'])];
  const counts = objectOf(json['made']);
  if (counts === undefined) throw unreadable('nothing was made');
  const files = url === undefined ? [{ base64: base64! }] : [{ url }];
  return { state: 'done', files, made: { usage: counts as Usage, estimated: false, media: [] } };
}

/** Each of its calls counts so much at most. */
const bounds = ({ extra, count }: Order) => ({
  inputTokens: count * Number(extra['input']),
  outputTokens: count * Number(extra['output']),
  images: 0,
  seconds: 0,
});

function orderOf(order: Order, films: boolean): VendorRequest {
  const { inputTokens: input, outputTokens: output } = bounds(order);
  return { method: 'POST', path: '/orders', body: { name: order.prompt, input, output, films } };
}

const paint: MediaAdapter = {
  name: 'paint',
  path: '/paint',
  kind: 'image',
  needsBytes: false,
  mostPerCall: 1,
  create: (order) => orderOf(order, false),
  readCreated: (answer) => stepOf(answer, ''),
  bounds,
};

const film: MediaAdapter = {
  name: 'film',
  path: '/film',
  kind: 'video',
  needsBytes: false,
  mostPerCall: 1,
  create: (order) => orderOf(order, true),
  readCreated(answer) {
    const read = readObject(answer);
    if ('failed' in read) return read.failed;
    return { state: 'queued', vendorId: textOf(read.json['task'])! };
  },
  tasks: {
    poll: (vendorId) => ({ method: 'GET', path: `/${vendorId}` }),
    readPolled: (answer, _order, vendorId) => stepOf(answer, vendorId),
    cancel: (vendorId) => ({ method: 'DELETE', path: `/${vendorId}` }),
  },
  bounds,
};

export const studioAdapters: ReadonlyMap<string, MediaAdapter> = new Map([
  ['paint', paint],
  ['film', film],
]);
