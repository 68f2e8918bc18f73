/** A route plugin with providers of its own and an upstream that answers as a test scripts it. */

import type { Exchange, Outcome } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Answer } from '../../../core/contract/message.ts';
import { UpstreamError, UpstreamRefusal } from '../../../core/contract/upstream-failures.ts';
import { type Caller, caller } from '../../../plugins/common/domain/accounts.ts';
import {
  type Attempt,
  attempts,
  type Call,
  call,
  conversation,
  type Pinned,
  pinned,
  type SpendGuard,
  spendGuard,
  type UsageReport,
  usageReport,
} from '../../../plugins/common/domain/calls.ts';
import { type Model, type ModelTarget, model } from '../../../plugins/common/domain/models.ts';
import { flatBook } from '../../../plugins/common/domain/prices.ts';
import { type TimelineEvent, timeline } from '../../../plugins/common/domain/timeline.ts';
import { type Target, target, translations } from '../../../plugins/common/domain/upstreams.ts';
import type { Usage } from '../../../plugins/common/domain/usage.ts';
import providersPlugin from '../../../plugins/providers/index.ts';
import routePlugin from '../../../plugins/route/index.ts';
import { type FakeExchange, type FakeHost, fakeExchange, fakeHost, okAnswer, setUp } from '../../helpers/fakes.ts';

/** What one attempt meets: an answer, or an error. `sent`: the request is handed to a socket first. */
export interface Step {
  readonly sent?: boolean;
  readonly answer?: Answer;
  readonly error?: unknown;
  readonly takesMs?: number;
  /** What its vendor has counted, although it fails. */
  readonly usage?: Usage;
  /** It is answered only then. */
  readonly after?: Promise<void>;
  /** What is met instead where the attempt went to this provider. */
  readonly byProvider?: Record<string, Step>;
}

export const ok: Step = { sent: true, answer: okAnswer };
export const unreachable: Step = { error: new UpstreamError('connect', 'connect ECONNREFUSED 10.0.0.1:443') };
export const reset: Step = { sent: true, error: new UpstreamError('sent', 'socket hang up') };

export function refusal(status: number, details: Partial<ConstructorParameters<typeof UpstreamRefusal>[1]> = {}): Step {
  const answer = { status, headers: {}, body: `refused with ${status}` };
  const rendered = new GatewayError(status < 500 ? 'invalid_request' : 'upstream_failed', `rendered for ${status}`);
  return { sent: true, error: new UpstreamRefusal(rendered, { status, answer, ...details }) };
}

export function modelWith(...targets: (string | ModelTarget)[]): Model {
  return {
    id: 'm',
    ownedBy: 'someone',
    created: 0,
    displayName: 'M',
    kind: 'chat',
    targets: targets.map((entry) =>
      typeof entry === 'string' ? { provider: entry, model: `${entry}-m`, weight: 0 } : entry,
    ),
    contextTokens: undefined,
    maxOutputTokens: undefined,
    prices: flatBook({}, 'x'),
  };
}

export interface Trip {
  readonly answer?: Answer;
  readonly error?: unknown;
  readonly targets: readonly Target[];
  readonly attempts: readonly Attempt[];
  readonly exchange: FakeExchange;
}

export interface Bench {
  readonly host: FakeHost;
  /** Sends one request whose attempts meet the steps in turn, and ends it unless it is asked to go on. */
  go(entry: Model, steps: readonly Step[], options?: GoOptions): Promise<Trip>;
}

export interface GoOptions {
  readonly protocol?: string;
  /** Whether more than an answer comes of it; absent: not known. */
  readonly effects?: boolean | undefined;
  /** Its money. */
  readonly guard?: SpendGuard;
  readonly leaveAt?: number;
  readonly reason?: unknown;
  readonly pinned?: Pinned;
  readonly stream?: boolean;
  /** What its body names, how it began, its headers and length. */
  readonly session?: string;
  readonly opening?: string;
  readonly headers?: Record<string, string>;
  readonly bodyBytes?: number;
  readonly media?: () => ReadonlySet<string>;
  readonly account?: string;
  /** The answer still goes out: the test ends it. */
  readonly open?: boolean;
  /** How the answer ends. */
  readonly outcome?: Partial<Outcome>;
  /** Events are recorded into it. */
  readonly story?: TimelineEvent[];
  /** Called with where each attempt goes. */
  readonly seen?: (provider: string) => void;
  /** The client's. */
  readonly controller?: AbortController;
}

const vendors = {
  a: { keys: ['a-one', 'a-two'], speaks: { chat: 'https://a.example/v1' } },
  b: { keys: 'b-one', speaks: { chat: 'https://b.example/v1', messages: 'https://b.example' } },
  c: { keys: 'c-one', speaks: { messages: 'https://c.example' } },
};

export async function bench(section: unknown = {}, vendorSection: unknown = vendors): Promise<Bench> {
  const host = fakeHost();
  await setUp(providersPlugin, host, vendorSection);
  host.provide(translations, {
    can: (from, to) => from === to,
    paths: () => new Map(),
    endpoints: () =>
      new Map([
        ['chat', '/v1/chat/completions'],
        ['messages', '/v1/messages'],
        ['own', '/v1/own'],
      ]),
  });
  const part = await setUp(routePlugin, host, section);
  return {
    host,
    async go(entry, steps, options = {}) {
      const { protocol = 'chat', leaveAt, reason, stream = false, controller = new AbortController() } = options;
      const { session: name, opening, headers = {}, bodyBytes = 0, account = 'someone' } = options;
      const wanted = { protocol, model: entry.id, stream, billable: true } as Call;
      const base = fakeExchange({
        request: { headers, bodyBytes },
        lines: host.lines,
        facts: [
          [call, wanted],
          [model, entry],
          [pinned, options.pinned],
          [timeline, options.story],
          [caller, { accountId: account } as Caller],
          [
            conversation,
            {
              name,
              opening: () => opening,
              hasSideEffects: () => options.effects,
              mediaKinds: () => options.media?.() ?? new Set(),
            },
          ],
          [spendGuard, options.guard],
        ],
      });
      const exchange: FakeExchange & Exchange = Object.defineProperty(base, 'signal', { value: controller.signal });
      const targets: Target[] = [];
      const upstream = async (): Promise<Answer> => {
        const listed = steps[targets.length];
        const to = exchange.get(target);
        const step = listed?.byProvider?.[to.provider] ?? listed;
        targets.push(to);
        options.seen?.(to.provider);
        if (step === undefined) throw new Error('the test scripted no further attempt');
        if (step.sent === true) await exchange.send();
        await step.after;
        host.advance(step.takesMs ?? 0);
        if (targets.length === leaveAt) controller.abort(reason);
        if (step.answer !== undefined) return step.answer;
        if (step.usage !== undefined) exchange.set(usageReport, { usage: step.usage, estimated: false } as UsageReport);
        throw step.error;
      };
      const made = () => ({ targets, attempts: exchange.find(attempts) ?? [], exchange });
      try {
        return { answer: await part.handle!(exchange, upstream), ...made() };
      } catch (error) {
        return { error, ...made() };
      } finally {
        if (options.open !== true) await exchange.end(options.outcome);
      }
    },
  };
}

export const credentials = (trip: Trip) => trip.targets.map((entry) => entry.credential);
export const results = (trip: Trip) => trip.attempts.map((entry) => entry.result);
