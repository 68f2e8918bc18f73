/** State that all requests of the sandbox vendor share, and its JSON answers. */

import type { ServerResponse } from 'node:http';
import type { Bill } from './bill.ts';
import type { PromptCache } from './cache.ts';
import type { VideoJobs } from './media/video-jobs.ts';
import type { StoredResponses } from './stored-responses.ts';

/** State that all requests of a vendor share. */
export interface Vendor {
  /** The required key; undefined: any or none. */
  readonly key: string | undefined;
  /** Delay before each answer's head, and between the pieces of a stream, without a directive. */
  readonly firstByteMs: number;
  readonly chunkMs: number;
  readonly cache: PromptCache;
  readonly bill: Bill;
  readonly videos: VideoJobs;
  readonly responses: StoredResponses;
  /** Wall-clock milliseconds. */
  now(): number;
  /** Unique letters and digits. */
  nextId(): string;
}

export function jsonHeaders(headers: Record<string, string>, body: string): Record<string, string | number> {
  return { ...headers, 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
}

/** A whole JSON answer. */
export function sendJson(answer: ServerResponse, status: number, headers: Record<string, string>, body: string): void {
  answer.writeHead(status, jsonHeaders(headers, body)).end(body);
}
