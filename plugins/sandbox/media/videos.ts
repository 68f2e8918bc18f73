/** The vendor's video tasks: each lasts as long as ordered, is billed once when it succeeds, and is told as often as asked. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Bill } from '../bill.ts';
import { Fault, orderedFault } from '../fault.ts';
import { parse, readBody, requestIdOf } from '../incoming.ts';
import { wait } from '../play.ts';
import { sendJson, type Vendor } from '../run.ts';
import { arkVideos } from './ark-videos.ts';
import { seedOf } from './canvas.ts';
import type { VideoDialect, VideoState, VideoTask } from './dialect.ts';
import { videoLink } from './links.ts';
import { answering, checkKey, originOf } from './pictures.ts';
import { xaiVideos } from './xai-videos.ts';

export type VideoProtocol = 'xai-videos' | 'ark-videos';
const dialects: Record<VideoProtocol, VideoDialect> = { 'xai-videos': xaiVideos, 'ark-videos': arkVideos };

/** Without a directive. */
const usualWorkMs = 1_000;
/** The share of its time that a task waits before it runs. */
const queuedShare = 0.2;
const maxTasks = 10_000;

interface Job extends VideoTask {
  readonly protocol: VideoProtocol;
  readonly workMs: number;
  readonly requestId: string | undefined;
  polls: number;
  /** How often it was told that it succeeded. */
  successes: number;
  isCancelled: boolean;
}

export class VideoJobs {
  readonly #jobs = new Map<string, Job>();
  readonly #open = new Set<Job>();
  readonly #bill: Bill;

  constructor(bill: Bill) {
    this.#bill = bill;
  }

  add(job: Job): void {
    const oldest = this.#jobs.size < maxTasks ? undefined : this.#jobs.keys().next().value;
    if (oldest !== undefined) this.#jobs.delete(oldest);
    this.#jobs.set(job.id, job);
    this.#open.add(job);
    this.#bill.opened();
  }

  find(protocol: VideoProtocol, id: string): Job | undefined {
    const job = this.#jobs.get(id);
    return job?.protocol === protocol ? job : undefined;
  }

  /** Bills what has succeeded by now, whether or not anybody has asked. */
  settle(now: number): void {
    for (const job of this.#open) {
      const state = stateOf(job, now);
      if (state === 'queued' || state === 'running') continue;
      this.#open.delete(job);
      this.#bill.closed();
      if (state === 'succeeded') this.#bill.add(entryOf(job));
    }
  }
}

function entryOf(job: Job): Parameters<Bill['add']>[0] {
  return {
    at: job.createdAtMs,
    endedAt: job.createdAtMs + job.workMs,
    protocol: 'videos',
    model: job.ask.model,
    requestId: job.requestId,
    answerId: job.id,
    usage: dialects[job.protocol].usage(job.ask),
    outcome: 'complete',
  };
}

function shareOf(job: Job, now: number): number {
  return job.workMs === 0 ? 1 : Math.min(1, (now - job.createdAtMs) / job.workMs);
}

function stateOf(job: Job, now: number): VideoState {
  const { directives } = job.ask;
  if (job.isCancelled) return 'cancelled';
  const share = shareOf(job, now);
  if (share < queuedShare) return 'queued';
  if (share < 1 || directives.stuck) return 'running';
  if (directives.moderated || directives.refuse) return 'moderated';
  if (directives.failed) return 'failed';
  return directives.lapsed ? 'expired' : 'succeeded';
}

/** Never rejects: faults are answered in the protocol's words. `id` is of a task that is there already. */
export async function serveVideos(
  vendor: Vendor,
  protocol: VideoProtocol,
  id: string | undefined,
  request: IncomingMessage,
  answer: ServerResponse,
): Promise<void> {
  const dialect = dialects[protocol];
  await answering(vendor, dialect, answer, async (answerId) => {
    const bytes = await readBody(request);
    checkKey(vendor, request);
    if (id === undefined) return await create(vendor, protocol, bytes, answerId, request, answer);
    const job = vendor.videos.find(protocol, id);
    if (job === undefined) throw new Fault(404, 'The sandbox has no task of this id.');
    if (request.method === 'DELETE') cancel(vendor, job, answer);
    else tell(vendor, job, request, answer);
  });
}

async function create(
  vendor: Vendor,
  protocol: VideoProtocol,
  bytes: Buffer,
  answerId: string,
  request: IncomingMessage,
  answer: ServerResponse,
): Promise<void> {
  const dialect = dialects[protocol];
  const ask = dialect.read(parse(bytes));
  const { directives } = ask;
  const delayMs = directives.delay ?? vendor.firstByteMs;
  if (delayMs > 0) await wait(answer, delayMs);
  if (directives.status !== undefined) throw orderedFault(directives.status, directives.retry_after);
  const id = `${dialect.idPrefix}${answerId}`;
  const workMs = directives.takes ?? usualWorkMs;
  const requestId = requestIdOf(request);
  const fresh = { polls: 0, successes: 0, isCancelled: false };
  vendor.videos.add({ id, ask, createdAtMs: vendor.now(), protocol, workMs, requestId, ...fresh });
  if (directives.error_after !== undefined) throw orderedFault(directives.error_after, directives.retry_after);
  if (directives.cut_after !== undefined) return void answer.destroy();
  sendJson(answer, 200, {}, JSON.stringify(dialect.created(id)));
}

function tell(vendor: Vendor, job: Job, request: IncomingMessage, answer: ServerResponse): void {
  const { directives } = job.ask;
  const now = vendor.now();
  vendor.videos.settle(now);
  job.polls++;
  if (job.polls <= (directives.poll_404 ?? 0)) throw orderedFault(404);
  if (job.polls <= (directives.poll_500 ?? 0)) throw orderedFault(500);
  let state = stateOf(job, now);
  if (state === 'succeeded') {
    job.successes++;
    // Told as done, then as running, then as done again, elsewhere.
    if (directives.twice && job.successes === 2) state = 'running';
  }
  const seed = seedOf(job.ask.model, job.ask.prompt, directives.twice ? job.successes : 1);
  const url = videoLink(originOf(request), seed, job.ask.size, job.ask.seconds, now, directives.link_lasts);
  const { status, body } = dialects[job.protocol].told(job, state, { url, share: shareOf(job, now), now });
  if (status === 202 && directives.empty) return void answer.writeHead(202).end();
  sendJson(answer, status, {}, JSON.stringify(body));
}

/** Only what waits can be taken back. */
function cancel(vendor: Vendor, job: Job, answer: ServerResponse): void {
  const state = stateOf(job, vendor.now());
  if (state === 'running')
    throw new Fault(400, 'A running task cannot be cancelled.', { code: 'InvalidAction.RunningTaskDeletion' });
  if (state === 'queued') job.isCancelled = true;
  vendor.videos.settle(vendor.now());
  sendJson(answer, 200, {}, '{}');
}
