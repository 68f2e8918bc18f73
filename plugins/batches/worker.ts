/** Works on batches: takes them by lease, reads their input, makes their lines, writes their files. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Host } from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import type { BatchStatistics } from '../common/domain/admin/stored-work.ts';
import { bytesOf, isNoRoom, type UploadedFiles } from '../common/domain/stored-files.ts';
import { renderError } from '../common/kit/dialects.ts';
import { Workers } from '../common/kit/jobs/workers.ts';
import { orderFields } from '../common/wire/trace.ts';
import type { Batch, Counts, DoneLine, InputError, TakenLine } from './batch.ts';
import { type InputLimits, readInput } from './input.ts';
import type { LineRows } from './line-rows.ts';
import { isError, outputLine } from './output.ts';
import { isKeptNoMore, performLine, placementFor, unknownOutcome } from './perform.ts';
import type { BatchRows, Renewed } from './rows.ts';
import { type BatchSpace, bytesOfLines, spaceOf } from './space.ts';
import { LineUsage } from './usage.ts';
import { chooseVendor } from './vendor/choice.ts';
import { lost } from './vendor/rows.ts';
import type { Lease } from './vendor/step.ts';
import type { VendorWork } from './vendor/work.ts';

export interface WorkerOptions {
  readonly limits: InputLimits;
  /** Batches of this process at once, and lines of each at once. */
  readonly batches: number;
  readonly lines: number;
  readonly answerBytes: number;
  readonly leaseMs: number;
}

export interface WorkerTools {
  readonly host: Host;
  readonly rows: BatchRows;
  readonly lines: LineRows;
  readonly files: () => UploadedFiles;
  readonly space: BatchSpace;
  readonly vendorWork: VendorWork;
  /** A batch is given back, and may be due soon. */
  readonly released: () => void;
}

/** When a batch is due again; `hasStopped`: it is known that it was cancelled or has expired. */
interface Due {
  readonly ms: number;
  readonly hasStopped?: boolean;
}

const faultPauseMs = 10_000;
const pageLines = 100;
/** Answers that may come before they are counted, and how long lines wait for room. */
const uncountedBytes = 8_000_000;
const noRoomPauseMs = 60_000;

export class Worker {
  readonly #options: WorkerOptions;
  readonly #tools: WorkerTools;
  readonly #batches: Workers<Batch>;
  readonly #ended = { succeeded: 0, errored: 0 };
  #stopping = false;

  constructor(options: WorkerOptions, tools: WorkerTools) {
    this.#options = options;
    this.#tools = tools;
    const { host, rows, released } = tools;
    this.#batches = new Workers({
      places: options.batches,
      random: host.random,
      take: (token, limit) => rows.take(token, limit, options.leaseMs),
      work: (batch, token) => this.#work(batch, token),
      freed: released,
    });
  }

  /** Lines that this process has finished. */
  get lines(): BatchStatistics['lines'] {
    return this.#ended;
  }

  /** Takes a due batch, if this process has a place for it. */
  poll(): Promise<void> {
    return this.#batches.turn();
  }

  /** Begins nothing more. */
  drain(): void {
    this.#stopping = true;
    this.#batches.drain();
  }

  async stop(): Promise<void> {
    this.drain();
    await this.#batches.stop();
  }

  async #work(batch: Batch, token: string): Promise<void> {
    const { rows, host } = this.#tools;
    try {
      let due: Due | undefined = { ms: 0 };
      if (batch.state === 'validating') await this.#validate(batch, token);
      else if (batch.state === 'running') due = await this.#run(batch, token);
      else await this.#finish(batch, token);
      if (due !== undefined) await rows.release(batch.id, token, due.ms, due.hasStopped);
    } catch (error) {
      const level = error instanceof GatewayError ? 'warn' : 'error';
      host.log[level]({ ...orderFields(batch), error, batch: batch.id }, 'a batch is worked on again in a moment');
      await rows.release(batch.id, token, faultPauseMs).catch(() => {});
    }
  }

  async #validate(batch: Batch, token: string): Promise<void> {
    const { host, rows, lines, files, space } = this.#tools;
    const opened = await files().open(batch.accountId, batch.inputFile);
    if (opened === undefined) {
      const message = 'The input file is not there any more.';
      const errors = [{ line: null, code: 'file_not_found', message, param: 'input_file_id' }];
      return this.#fail(batch, token, errors);
    }
    try {
      // A lost worker may have read some lines.
      await lines.clear(batch.id);
      let bytes = 0;
      const take = async (group: Parameters<LineRows['add']>[1]) => {
        if ((await rows.renew(batch.id, token, this.#options.leaseMs)) === undefined) throw lost();
        bytes += bytesOfLines(group);
        await space.take(batch, bytes);
        await lines.add(batch.id, group);
      };
      const { total, model, errors } = await readInput(opened.body, batch.endpoint, this.#options.limits, take);
      const vendor = chooseVendor(host, batch.endpoint, model, await placementFor(host, batch));
      if (errors.length === 0) await rows.begin(batch.id, token, total, vendor);
      else await this.#fail(batch, token, errors);
    } catch (error) {
      if (!isNoRoom(error)) throw error;
      const { code = '', message } = error;
      await this.#fail(batch, token, [{ line: null, code, message, param: null }]);
    } finally {
      opened.close();
    }
  }

  async #fail(batch: Batch, token: string, errors: readonly InputError[]): Promise<void> {
    const { rows, lines, space } = this.#tools;
    await lines.clear(batch.id);
    if (await rows.fail(batch.id, token, errors)) await space.end(batch, errors);
  }

  /** Resolves with when the batch is due again; undefined: another worker has it. */
  async #run(batch: Batch, token: string): Promise<Due | undefined> {
    const { rows, host, space, vendorWork } = this.#tools;
    if (await isKeptNoMore(host, batch)) await rows.cancel(batch.accountId, batch.id);
    const vendor = await vendorWork.run(batch, this.#lease(batch, token));
    if (vendor?.isPreparing === true) return { ms: vendor.ms };
    const renewMs = this.#options.leaseMs / 3;
    const open = new Map<number, Promise<void>>();
    for (;;) {
      const renewed = await rows.renew(batch.id, token, this.#options.leaseMs);
      const renewAt = host.clock.monotonic() + renewMs;
      const fits = renewed !== undefined && (await space.recount(batch));
      if (renewed?.stops === false && fits && (await this.#makeLines(batch, token, open, renewAt))) continue;
      // Sent calls are awaited within the lease.
      if (open.size > 0) await Promise.race([Promise.all(open.values()), pause(renewMs, undefined, { ref: false })]);
      if (open.size > 0) continue;
      if (renewed === undefined) return undefined;
      return this.#stopping ? { ms: 0 } : await this.#close(batch, token, renewed, { vendorMs: vendor?.ms, fits });
    }
  }

  /** No line runs: the batch waits for the next one, or for its vendor, or its files are due. */
  async #close(
    batch: Batch,
    token: string,
    { stops }: Renewed,
    { vendorMs, fits }: { readonly vendorMs: number | undefined; readonly fits: boolean },
  ): Promise<Due> {
    const { rows, lines, files } = this.#tools;
    if (stops) await lines.close(batch.id, renderError(unknownOutcome(), batch.dialect, '').body as string);
    const lineMs = stops ? undefined : await lines.nextDueMs(batch.id);
    // A line that is due and was not taken is one that failed in this process.
    const dues = [vendorMs, lineMs === undefined ? undefined : Math.max(lineMs, fits ? 1_000 : noRoomPauseMs)].filter(
      (ms) => ms !== undefined,
    );
    if (dues.length > 0) return { ms: Math.min(...dues), hasStopped: stops };
    await rows.finish(batch.id, token, { output: files().newId(), error: files().newId() });
    return { ms: 0 };
  }

  #lease({ id }: Batch, token: string): Lease {
    const { rows, host } = this.#tools;
    let known: Renewed | undefined;
    let renewAt = 0;
    const renew = async () => {
      known = await rows.renew(id, token, this.#options.leaseMs);
      if (known === undefined) throw lost();
      renewAt = host.clock.monotonic() + this.#options.leaseMs / 3;
      return known;
    };
    const keep = async () => (known === undefined || host.clock.monotonic() >= renewAt ? renew() : known);
    return { token, renew, keep, everyMs: this.#options.leaseMs / 3, isStopping: () => this.#stopping };
  }

  /** Keeps as many lines running as there may be, until none is due; true: until the lease is to be renewed, and lines may be left. */
  async #makeLines(batch: Batch, token: string, open: Map<number, Promise<void>>, renewAt: number): Promise<boolean> {
    const { lines, host } = this.#tools;
    let bytes = 0;
    while (!this.#stopping && host.clock.monotonic() < renewAt && bytes < uncountedBytes) {
      const free = this.#options.lines - open.size;
      const taken = free > 0 ? await lines.take(batch.id, token, free) : [];
      for (const line of taken)
        open.set(
          line.number,
          this.#make(batch, line, token)
            .then((answered) => {
              bytes += answered;
            })
            .finally(() => open.delete(line.number)),
        );
      if (free > 0 && taken.length === 0) return false;
      const leftMs = Math.max(0, renewAt - host.clock.monotonic());
      await Promise.race([...open.values(), pause(leftMs, undefined, { ref: false })]);
    }
    return !this.#stopping;
  }

  /** Resolves with the bytes of the answer. */
  async #make(batch: Batch, line: TakenLine, token: string): Promise<number> {
    const { host, lines } = this.#tools;
    try {
      const performed = await performLine(
        host,
        batch,
        line,
        await textOf(this.#tools.files(), batch, line),
        this.#options.answerBytes,
      );
      if ('laterMs' in performed) await lines.postpone(batch.id, line.number, token, performed.laterMs);
      else {
        await lines.finish(batch.id, line.number, performed);
        if (performed.result === 'succeeded' || performed.result === 'errored') this.#ended[performed.result] += 1;
        return performed.answer?.length ?? 0;
      }
    } catch (error) {
      // It stays `running`: the next worker gets its answer by its idempotency key.
      host.log.error(
        { ...orderFields(batch), error, batch: batch.id, line: line.number },
        'a line of a batch failed in the gateway',
      );
    }
    return 0;
  }

  /** Writes the files under the ids that they got before, so that a second time changes nothing. */
  async #finish(batch: Batch, token: string): Promise<void> {
    const counts = { succeeded: 0, errored: 0, cancelled: 0, expired: 0 };
    const used = new LineUsage();
    const count = (line: DoneLine) => {
      counts[line.result] += 1;
      if (batch.dialect === 'chat') used.add(line);
    };
    const output = await this.#write(batch, token, batch.outputFile!, 'output', false, count);
    const error = await this.#write(batch, token, batch.errorFile!, 'error', true, count);
    const usage = used.total();
    const { rows, space } = this.#tools;
    await rows.end(batch.id, token, { counts: counts satisfies Counts, usage, output, error });
    await space.end(batch);
  }

  /** undefined: it would be empty. */
  async #write(
    batch: Batch,
    token: string,
    id: string,
    kind: 'output' | 'error',
    ofErrors: boolean,
    count: (line: DoneLine) => void,
  ): Promise<string | undefined> {
    const { files } = this.#tools;
    const body = this.#linesOf(batch, token, ofErrors, count);
    const first = await body.next();
    if (first.done === true) return undefined;
    const received = await files().receive(batch.accountId, prepended(first.value, body));
    const details = { name: `${batch.id}_${kind}.jsonl`, purpose: 'batch_output', mediaType: 'application/jsonl' };
    const kept = { ...details, lifetimeMs: batch.outputLifetimeMs, space: spaceOf(batch) };
    await files().keep(batch.accountId, received, kept, id);
    return id;
  }

  async *#linesOf(
    batch: Batch,
    token: string,
    ofErrors: boolean,
    count: (line: DoneLine) => void,
  ): AsyncGenerator<Uint8Array> {
    const { rows, lines } = this.#tools;
    for (let after = 0; ; ) {
      if ((await rows.renew(batch.id, token, this.#options.leaseMs)) === undefined) throw lost();
      const page = await lines.done(batch.id, after, pageLines);
      for (const line of page) {
        if (isError(batch.dialect, line) !== ofErrors) continue;
        count(line);
        yield Buffer.from(outputLine(batch.dialect, batch.id, line));
      }
      if (page.length < pageLines) return;
      after = page.at(-1)!.number;
    }
  }
}

async function* prepended(first: Uint8Array, rest: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield first;
  yield* rest;
}

/** A line of the input; undefined: the file is gone. */
export async function textOf(
  files: UploadedFiles,
  { accountId, inputFile }: Batch,
  { firstByte, bytes }: { readonly firstByte: number; readonly bytes: number },
): Promise<string | undefined> {
  const span = { first: firstByte, last: firstByte + bytes - 1 };
  const opened = await files.open(accountId, inputFile, span);
  return opened && (await bytesOf(opened)).toString('utf8');
}
