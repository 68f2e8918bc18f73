/** What clients were answered, request by request: by which fault, with which status, for how long; and what of it must be in the ledger. */
import { setTimeout as pause } from 'node:timers/promises';

/** No answer here takes nearly as long. */
const longestMs = 90_000;

export interface Answer {
  /** 0: no connection, or it broke before the answer's end. */
  readonly status: number;
  /** The gateway's id of the request, if one answered. */
  readonly id: string | undefined;
  readonly text: string;
  readonly bytes: Buffer;
  readonly headers: Headers;
  /** The client was charged although it got an error. */
  readonly paysAnyway: boolean;
}

export interface RequestParts {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | FormData;
  /** A page of the same origin asks. */
  readonly isPage?: boolean;
  /** What only a whole answer contains, and what one that broke off contains. */
  readonly terminal?: RegExp;
  readonly streamError?: RegExp;
  /** Statuses that are no failure here. */
  readonly expected?: readonly number[];
}

interface Failure {
  readonly kind: string;
  readonly status: string;
  /** Milliseconds since the fault began. */
  readonly afterMs: number;
  readonly tookMs: number;
  readonly text: string;
}

interface Phase {
  readonly name: string;
  readonly beganAt: number;
  endedAt: number;
  requests: number;
  readonly failures: Failure[];
}

export class Answers {
  readonly phases: Phase[] = [];
  /** What clients hold whole: each was charged once. */
  readonly charged = new Map<string, string>();
  /** What was refused: none was charged. */
  readonly refused = new Map<string, string>();
  readonly #origins: readonly string[];
  #turn = 0;

  constructor(origins: readonly string[]) {
    this.#origins = origins;
    this.begin('none');
  }

  get requests(): number {
    return this.phases.reduce((sum, { requests }) => sum + requests, 0);
  }

  /** Answers are those of this fault from now on. */
  begin(name: string): void {
    const now = performance.now();
    const last = this.phases.at(-1);
    if (last !== undefined) last.endedAt = now;
    this.phases.push({ name, beganAt: now, endedAt: Number.POSITIVE_INFINITY, requests: 0, failures: [] });
  }

  end(): void {
    this.phases.at(-1)!.endedAt = performance.now();
  }

  async send(kind: string, path: string, requested: RequestParts = {}): Promise<Answer> {
    const beganAt = performance.now();
    const answer = await this.#fetch(path, requested);
    const { status, text } = answer;
    const isCut = status === 200 && requested.terminal !== undefined && !requested.terminal.test(text);
    const broke = isCut || (requested.streamError?.test(text) ?? false);
    const isServed = (status >= 200 && status < 300 && !broke) || (requested.expected ?? []).includes(status);
    const phase = this.phases.at(-1)!;
    phase.requests += 1;
    if (!isServed)
      phase.failures.push({
        kind,
        status: status === 0 ? 'broken' : broke ? `${status}, cut` : String(status),
        afterMs: performance.now() - phase.beganAt,
        tookMs: performance.now() - beganAt,
        text: text.slice(-300),
      });
    return isServed || status !== 200 ? answer : { ...answer, status: 0 };
  }

  /** Notes the outcome of a request that costs money. */
  note(kind: string, { id, status, paysAnyway }: Answer): void {
    if (id === undefined) return;
    if (status === 200) this.charged.set(id, kind);
    else if (status >= 400 && !paysAnyway) this.refused.set(id, kind);
  }

  /** As a balancer does: a gateway that takes no connection is passed by. */
  async #fetch(path: string, { method, headers, body, isPage }: RequestParts): Promise<Answer> {
    const count = this.#origins.length;
    const first = this.#turn++ % count;
    for (let tries = 0; ; tries++) {
      const origin = this.#origins[(first + tries) % count]!;
      try {
        const response = await fetch(origin + path, {
          method: method ?? (body === undefined ? 'GET' : 'POST'),
          redirect: 'manual',
          signal: AbortSignal.timeout(longestMs),
          headers: {
            ...(typeof body === 'string' ? { 'content-type': 'application/json' } : {}),
            ...(isPage === true ? { origin, 'x-console': '1' } : {}),
            ...headers,
          },
          ...(body === undefined ? {} : { body }),
        });
        return await read(response);
      } catch (error) {
        const cause = (error as { cause?: { code?: string } }).cause?.code;
        if (cause === 'ECONNREFUSED' && tries + 1 < count) continue;
        return { ...nothing, text: `${error}${cause === undefined ? '' : ` (${cause})`}` };
      }
    }
  }
}

const nothing: Answer = {
  ...{ status: 0, id: undefined, text: '', bytes: Buffer.alloc(0), headers: new Headers(), paysAnyway: false },
};

async function read(response: Response): Promise<Answer> {
  const { headers } = response;
  const chunks: Uint8Array[] = [];
  let { status } = response;
  try {
    for await (const chunk of response.body ?? []) chunks.push(chunk);
  } catch {
    status = 0;
  }
  const bytes = Buffer.concat(chunks);
  const paysAnyway = status >= 500 && headers.get('x-should-retry') === 'false';
  const id = headers.get('x-original-request-id') ?? headers.get('x-request-id') ?? undefined;
  return { status, id, text: bytes.toString(), bytes, headers, paysAnyway };
}

/** As official SDKs wait between two attempts. */
const longestPauseMs = 8_000;

/**
 * Asks again and again, as a client does that has to know, each `everyMs` where it was answered, else as it was asked to wait
 * or ever longer; undefined: not within the time.
 */
export async function untilAnswered(
  send: () => Promise<Answer>,
  isDone: (answer: Answer) => boolean,
  withinMs: number,
  everyMs = 500,
): Promise<Answer | undefined> {
  let failures = 0;
  for (const deadline = performance.now() + withinMs; performance.now() < deadline; ) {
    const answer = await send();
    if (isDone(answer)) return answer;
    failures = answer.status === 200 ? 0 : failures + 1;
    const waitMs = Number(answer.headers.get('retry-after') ?? 0) * 1_000 || everyMs * 2 ** (failures - 1);
    await pause(failures === 0 ? everyMs : Math.min(waitMs, longestPauseMs));
  }
  return undefined;
}
