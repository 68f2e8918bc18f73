/** Video tasks of the sandbox vendor, bounded in number. */

import type { Bill } from '../bill.ts';
import { arkVideos } from './ark-videos.ts';
import type { VideoDialect, VideoState, VideoTask } from './dialect.ts';
import { xaiVideos } from './xai-videos.ts';

const maxTasks = 10_000;

export interface Job extends VideoTask {
  readonly protocol: VideoProtocol;
  readonly workMs: number;
  readonly requestId: string | undefined;
  polls: number;
  /** Number of polls that reported success. */
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

  /** Bills tasks that have succeeded by now, even without a poll. */
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
    model: job.params.model,
    requestId: job.requestId,
    answerId: job.id,
    usage: dialects[job.protocol].usage(job.params),
    outcome: 'complete',
  };
}

export function stateOf(job: Job, now: number): VideoState {
  const { directives } = job.params;
  if (job.isCancelled) return 'cancelled';
  const share = shareOf(job, now);
  if (share < queuedShare) return 'queued';
  if (share < 1 || directives.stuck) return 'running';
  if (directives.moderated || directives.refuse) return 'moderated';
  if (directives.failed) return 'failed';
  return directives.lapsed ? 'expired' : 'succeeded';
}

export type VideoProtocol = 'xai-videos' | 'ark-videos';

export const dialects: Record<VideoProtocol, VideoDialect> = { 'xai-videos': xaiVideos, 'ark-videos': arkVideos };

/** Fraction of its time that a task is queued before it runs. */
const queuedShare = 0.2;

export function shareOf(job: Job, now: number): number {
  return job.workMs === 0 ? 1 : Math.min(1, (now - job.createdAtMs) / job.workMs);
}
