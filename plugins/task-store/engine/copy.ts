/** Copies a vendor's results to the gateway's storage before their addresses expire, then charges the task. */
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Target } from '../../common/domain/upstreams.ts';
import { backOff } from '../../common/kit/jobs/leases.ts';
import type { MadeFile, Step } from '../../common/media/adapters.ts';
import { orderFields } from '../../common/wire/trace.ts';
import { targetOf } from '../orders/targets.ts';
import type { Tools, WorkerContext } from './dependencies.ts';
import { complete, endUncharged, withLast } from './final-states.ts';
import type { From, StoredResult, StoredTask, TaskError, To, VendorFile } from './rows.ts';

const mostTries = 8;
const pauseMs = 500;
const lost: TaskError = { code: 'result_lost', message: 'The result could not be kept. Nothing is charged.' };

type Done = Extract<Step, { state: 'done' }>;

/**
 * Stores results that came as bytes at once, as no row could hold them; then the task is `copying`. If a client streams
 * the task, the same worker continues.
 */
export async function storeResults(
  tools: Tools,
  task: StoredTask,
  from: From,
  { files: made, made: report }: Done,
  worker: WorkerContext,
): Promise<void> {
  const { rows } = tools;
  const vendorFiles: VendorFile[] = [];
  for (const [number, file] of made.entries()) {
    const vendorFile = await toVendorFile(tools, task, file, number, worker);
    if (vendorFile === undefined) return fail(tools, { ...task, made: report }, from);
    vendorFiles.push(vendorFile);
  }
  const changes = { attempts: task.attempts, made: report, vendorFiles };
  const isWaitedFor = worker.live !== undefined;
  const next: To = { state: 'copying', dueMs: 0 };
  const to: To = isWaitedFor ? { ...next, keepLease: true } : next;
  const moved = await rows.move(task.id, from, to, changes);
  if (moved && isWaitedFor) await copy(tools, { ...task, ...changes, state: 'copying' }, worker);
}

async function toVendorFile(
  tools: Tools,
  task: StoredTask,
  file: MadeFile,
  number: number,
  { signal }: WorkerContext,
): Promise<VendorFile | undefined> {
  const kind = kindOf(file, task);
  if ('url' in file) return { url: file.url, kind };
  const content = Buffer.from(file.base64, 'base64');
  const owner = { accountId: task.accountId, taskId: task.id, number };
  for (let tries = 0; tries < mostTries; tries += 1) {
    try {
      const { id, mediaType } = await tools.files.keep(content, kind, owner, signal);
      return { kept: { id, mediaType } };
    } catch (error) {
      tools.log.warn({ ...orderFields(task), error, task: task.id }, 'a result could not be stored');
      if (isPermanent(error) || signal.aborted) return undefined;
      await new Promise((resolve) => setTimeout(resolve, pauseMs * 2 ** tries));
    }
  }
  return undefined;
}

/** A still of a video is an image. */
function kindOf({ mediaType }: MadeFile, { kind }: StoredTask): StoredTask['kind'] {
  if (mediaType?.startsWith('image/') === true) return 'image';
  return mediaType?.startsWith('video/') === true ? 'video' : kind;
}

/** Copies the results that are still at the vendor, and ends the task. */
export async function copy(tools: Tools, task: StoredTask, worker: WorkerContext): Promise<void> {
  const from: From = { states: ['copying'], by: { lease: worker.lease } };
  try {
    const results: StoredResult[] = [];
    for (const [number, file] of task.vendorFiles.entries()) {
      results.push('kept' in file ? file.kept : await fetchResult(tools, task, file, number, worker));
    }
    await complete(tools, task, from, results);
  } catch (error) {
    if (worker.signal.aborted) return;
    tools.log.warn({ ...orderFields(task), error, task: task.id, tries: task.tries }, 'a result could not be copied');
    if (isPermanent(error) || task.tries + 1 >= mostTries) return fail(tools, task, from);
    const { rows, timing, random } = tools;
    const dueMs = backOff(task.tries, timing.retryMs, timing.longestRetryMs, random);
    await rows.move(task.id, from, { state: 'copying', dueMs }, { tries: task.tries + 1 });
  }
}

async function fetchResult(
  tools: Tools,
  task: StoredTask,
  { url, kind }: Extract<VendorFile, { url: string }>,
  number: number,
  { signal }: WorkerContext,
): Promise<StoredResult> {
  const { catalog, providers, adapters, files } = tools;
  const last = task.attempts.at(-1);
  const target = last && targetOf(last, catalog.find(task.model), providers, adapters)?.target;
  const owner = { accountId: task.accountId, taskId: task.id, number };
  const vendor = target && { baseUrl: target.baseUrl, headers: headersTo(target), network: target.network };
  const content = vendor === undefined ? { url } : { url, vendor };
  const { id, mediaType } = await files.keep(content, kind, owner, signal);
  return { id, mediaType };
}

/** The operator's own headers, without the key, which addresses of results do not need. */
function headersTo({ upstream, headers }: Target): Readonly<Record<string, string>> {
  const common = Object.entries(upstream.headers).map(([name, value]) => [name.toLowerCase(), value]);
  return { ...Object.fromEntries(common), ...headers };
}

function isPermanent(error: unknown): boolean {
  return error instanceof GatewayError && error.shouldRetry === false;
}

/** The vendor has charged, and the client has no result. */
async function fail(tools: Tools, task: StoredTask, from: From): Promise<void> {
  const { usage, estimated } = task.made!;
  const attempts = withLast(task.attempts, { consumed: { usage, estimated } });
  await endUncharged(tools, task, from, { state: 'failed', error: lost, attempts });
  await tools.files.removeFilesOfTask(task.accountId, task.id);
}
