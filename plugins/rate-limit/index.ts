/** Limits requests, tokens and concurrent calls by the account's plan and the key. */
import {
  type Clock,
  definePlugin,
  type Endpoint,
  type Exchange,
  type Host,
  type Next,
  type PluginInstance,
} from '../../core/contract/contract.ts';
import type { Answer } from '../../core/contract/message.ts';
import { reloadable } from '../../core/contract/reloadable.ts';
import { count, z } from '../../core/contract/schema.ts';
import { caller } from '../common/domain/accounts.ts';
import { type Call, call, vendorBatch } from '../common/domain/calls.ts';
import { counters } from '../common/domain/counters.ts';
import { plan, rateLimits } from '../common/domain/plans.ts';
import { recordEvent } from '../common/domain/timeline.ts';
import { endpointMatches, unmatchedRules } from '../common/kit/endpoint-rules.ts';
import { CountedLimiter } from './counted.ts';
import { type DemandOptions, demandsOf } from './demands.ts';
import { limitHeaders } from './headers.ts';
import { limitEvent, limitValues } from './limit-event.ts';
import type { Demand, Limiter, Verdict } from './limiter.ts';
import { LiveProcesses } from './live-processes.ts';
import { MemoryLimiter } from './memory.ts';
import { overLimit } from './refusal.ts';
import { SharedLimiter } from './shared.ts';
import { ownerOf, returnAtEnd, slotLifetimeOf, slotTaken, takeSlots } from './slots.ts';

const sweepIntervalMs = 60_000;

/** Not every gateway has all of them. */
const usualEndpoints = [
  'chat',
  'responses',
  'compact',
  'messages',
  'generate-content',
  'completions',
  'images',
  'tasks',
  'embeddings',
  'rerank',
  'decisions',
  'moderations',
  'tool-call',
  'speech',
  'transcriptions',
  'usage',
  'uploads',
  'batches',
  'vector-stores',
];

const config = z.strictObject({
  endpoints: z
    .array(z.string().min(1))
    .default([...usualEndpoints])
    .describe(
      'Endpoints that are limited, by operation name or as "POST /v1/messages"; all others never are. Add one to limit it too.',
    ),
  reserve: z
    .strictObject({
      output_tokens: count()
        .prefault(4096)
        .describe(
          'The most output tokens that a running answer reserves; at its end the true count replaces them. Lower it when clients with long max_tokens are refused too early.',
        ),
    })
    .prefault({})
    .describe('How tokens are counted before they are known.'),
});

type Settings = z.output<typeof config>;

export default definePlugin<Settings>({
  name: 'rate-limit',
  config,
  services: { optional: [counters], provides: [rateLimits] },
  requires: [caller, plan],
  optional: [call],

  setup(host: Host, settings: Settings) {
    const memory = new MemoryLimiter(host.clock);
    host.every(sweepIntervalMs, 'forget idle rate limits', () => memory.sweep());
    const limiter = limiterOf(host, memory);
    const start = () => {
      logUnmatched(host, settings.endpoints);
      warnOfSeparateCounts(host);
    };
    const limiting: PluginInstance<Settings> = reloadable(
      { lifecycle: { start } },
      settings,
      ({ endpoints, reserve }) => ({
        checks: {
          notices: () => {
            const rules = endpoints.filter((rule) => !usualEndpoints.includes(rule));
            return unmatchedRules('rate-limit.endpoints', rules, host.endpoints());
          },
        },

        applies: (endpoint: Endpoint) => endpoints.some((rule) => endpointMatches(rule, endpoint)),

        // The vendor of a batch has its own pace.
        admit: (exchange: Exchange) =>
          exchange.find(vendorBatch) === undefined ? takeSlots(exchange, limiter) : undefined,

        handle(exchange: Exchange, next: Next) {
          if (exchange.find(vendorBatch) !== undefined) return next();
          const { endpoint } = exchange;
          // If the endpoint sets a call, a missing one means that it was set too late: an error is better than no limit.
          const currentCall = endpoint.setsOnOpen?.includes(call) === true ? exchange.get(call) : undefined;
          const identity = exchange.get(caller);
          const options = {
            reservedOutputTokens: reserve.output_tokens,
            slotLifetimeMs: slotLifetimeOf(endpoint),
            group: identity.accountId,
          };
          const demands = allDemands(exchange, currentCall, options);
          if (demands.length === 0) return next();
          // Image protocols have no headers of limits.
          const dialect = currentCall?.kind === undefined ? currentCall?.protocol : undefined;
          const taken = limiter.take(exchange.id, demands);
          // The memory limiter is synchronous; a promise would cost a turn.
          return taken instanceof Promise
            ? taken.then((verdict) => follow(verdict, exchange, demands, dialect, host.clock, next))
            : follow(taken, exchange, demands, dialect, host.clock, next);
        },
      }),
    );
    host.provide(rateLimits, { covers: (endpoint) => limiting.applies!(endpoint) });
    return limiting;
  },
});

/** Refuses, or calls `next` and adds headers with the rest of the limits. */
function follow(
  verdict: Verdict,
  exchange: Exchange,
  demands: readonly Demand[],
  dialect: string | undefined,
  clock: Clock,
  next: Next,
): Promise<Answer> {
  const { statuses, refusedBy, retryAfterMs } = verdict;
  const identity = exchange.get(caller);
  const now = clock.now();
  recordEvent(exchange, now, limitEvent, limitValues(identity.accountId, demands, verdict));
  returnAtEnd(verdict, exchange, demands);
  if (refusedBy !== undefined) {
    const headers = limitHeaders(dialect, statuses, now);
    throw overLimit(ownerOf(refusedBy, identity, exchange.get(plan)), refusedBy, retryAfterMs, headers);
  }
  return next().then((answer) => {
    limitHeaders(dialect, statuses, now, answer.headers);
    return answer;
  });
}

/** The key's own limits are checked together with the plan's: all are granted or none. */
function allDemands(exchange: Exchange, currentCall: Call | undefined, options: DemandOptions): Demand[] {
  const { accountId, keyId, keyLimits } = exchange.get(caller);
  const demands = demandsOf(accountId, exchange.get(plan).limits, currentCall, options);
  if (keyLimits !== undefined) demands.push(...demandsOf(`key:${keyId}`, keyLimits, currentCall, options));
  const hasSlot = exchange.find(slotTaken) === true;
  return hasSlot ? demands.filter(({ dimension }) => dimension !== 'concurrency') : demands;
}

/** Counts with the other processes if they share counters, otherwise alone. */
function limiterOf(host: Host, memory: MemoryLimiter): Pick<Limiter, 'take'> {
  const shared = host.find(counters);
  if (shared === undefined) return memory;
  const liveProcesses = new LiveProcesses(shared, host);
  host.every(LiveProcesses.intervalMs, 'count the processes that share limits', () => liveProcesses.heartbeat());
  const { clock } = host;
  const counted = new CountedLimiter(shared, `${host.schema}:limits:`);
  return new SharedLimiter({ counted, memory, processes: () => liveProcesses.processes, clock });
}

/** Without shared counters, every process grants the full limit. */
function warnOfSeparateCounts({ processGroup, find, log }: Host): void {
  if (processGroup.size === 1 || !processGroup.isFirst || find(counters) !== undefined) return;
  log.warn(
    { processes: processGroup.size },
    'each of these processes counts the limits by itself: set storage.counters to a redis:// URL to have them counted together',
  );
}

/** A misspelt rule would silently leave an endpoint unlimited. */
function logUnmatched(host: Host, rules: readonly string[]): void {
  const unmatched = rules.filter((rule) => !host.endpoints().some((endpoint) => endpointMatches(rule, endpoint)));
  if (unmatched.length > 0)
    host.log.info({ rules: unmatched }, `rate-limit.endpoints: this gateway has no ${unmatched.join(', ')}`);
}
