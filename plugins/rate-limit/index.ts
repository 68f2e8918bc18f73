/** Requests, tokens and concurrent calls, held to what the account's plan and the key allow. */
import { definePlugin, type Endpoint, type Exchange, type Host, type Next } from '../../core/contract.ts';
import { reloadable } from '../../core/reloadable.ts';
import { count, z } from '../../core/schema.ts';
import { totalTokens } from '../../core/usage.ts';
import {
  type Caller,
  call,
  caller,
  counters,
  endpointMatches,
  type PlanTerms,
  plan,
  tell,
  usageReport,
} from '../../core/vocabulary.ts';
import { CountedLimiter } from './counted.ts';
import type { Receipt } from './decide.ts';
import { demandsOf } from './demands.ts';
import { limitHeaders } from './headers.ts';
import type { Demand, Limiter } from './limiter.ts';
import { MemoryLimiter } from './memory.ts';
import { Presence } from './presence.ts';
import { overLimit } from './refusal.ts';
import { SharedLimiter } from './shared.ts';
import { standingLine, standingValues } from './story.ts';

const sweepIntervalMs = 60_000;
/** What an exchange may take when its endpoint sets no other deadline. */
const defaultDeadlineMs = 600_000;
/** Deferred work runs a little after the deadline. */
const slotGraceMs = 60_000;

const config = z.strictObject({
  endpoints: z
    .array(z.string().min(1))
    .default(['chat', 'responses', 'compact', 'messages', 'generate-content', 'images', 'tasks'])
    .describe('Endpoints that are limited, by operation name or as "POST /v1/messages". All others never are.'),
  reserve: z
    .strictObject({
      output_tokens: count()
        .prefault(4096)
        .describe('The most output tokens that a running answer reserves; at its end the true count replaces them.'),
    })
    .prefault({})
    .describe('How tokens are counted before they are known.'),
});

export default definePlugin({
  name: 'rate-limit',
  config,
  uses: [counters],
  reads: [caller, plan],
  finds: [call],

  setup(host: Host, settings: z.output<typeof config>) {
    const memory = new MemoryLimiter(host.clock);
    host.every(sweepIntervalMs, 'forget idle rate limits', () => memory.sweep());
    const limiter = limiterOf(host, memory);
    const part = {
      start() {
        nameUnmatched(host, settings.endpoints);
        warnOfSeparateCounts(host);
      },
    };
    return reloadable(part, settings, ({ endpoints, reserve }) => ({
      applies: (endpoint: Endpoint) => endpoints.some((rule) => endpointMatches(rule, endpoint)),

      async handle(exchange: Exchange, next: Next) {
        const { endpoint } = exchange;
        const terms = exchange.get(plan);
        // Where the endpoint states a call, a missing one means that it was opened too late: better loud than unlimited.
        const asked = endpoint.states?.includes(call) === true ? exchange.get(call) : undefined;
        const who = exchange.get(caller);
        const options = {
          reservedOutputTokens: reserve.output_tokens,
          slotLifetimeMs: (endpoint.timeoutMs ?? defaultDeadlineMs) + slotGraceMs,
          group: who.accountId,
        };
        const demands = demandsOf(who.accountId, terms.limits, asked, options);
        // The key's own limits are asked for in one go with the plan's: all are granted or none.
        if (who.keyLimits !== undefined) demands.push(...demandsOf(`key:${who.keyId}`, who.keyLimits, asked, options));
        if (demands.length === 0) return next();
        const taken = limiter.take(exchange.id, demands);
        // In memory nothing is waited for, and waiting for nothing would cost a turn.
        const verdict = taken instanceof Promise ? await taken : taken;
        tell(exchange, host.clock.now(), standingLine, () => standingValues(who.accountId, demands, verdict));
        verdict.receipts.forEach((receipt, index) => {
          returnAtEnd(verdict.by, exchange, demands[index]!, receipt);
        });
        // Protocols of images have no words of their own for it.
        const dialect = asked?.kind === undefined ? asked?.protocol : undefined;
        const headers = limitHeaders(dialect, verdict.standings, host.clock.now());
        if (verdict.refusedBy !== undefined)
          throw overLimit(ownerOf(verdict.refusedBy, who, terms), verdict.refusedBy, verdict.retryAfterMs, headers);
        const answer = await next();
        Object.assign(answer.headers, headers);
        return answer;
      },
    }));
  },
});

/** Who sets this limit, in a refusal's words. */
function ownerOf({ subject }: Demand, { accountId }: Caller, { name }: PlanTerms): string {
  return subject === accountId ? `plan "${name}"` : 'this key';
}

/** Counts together with the other processes where they share counters, else by itself. */
function limiterOf(host: Host, memory: MemoryLimiter): Pick<Limiter, 'take'> {
  const shared = host.find(counters);
  if (shared === undefined) return memory;
  const presence = new Presence(shared, host);
  host.every(Presence.intervalMs, 'count the processes that share limits', () => presence.tell());
  const { clock, log } = host;
  const counted = new CountedLimiter(shared, `${host.schema}:limits:`);
  return new SharedLimiter({ counted, memory, processes: () => presence.processes, clock, log });
}

/** Gives back what `demand` took when the exchange has ended, however it ended. An exchange without a usage report used no tokens. */
function returnAtEnd(limiter: Limiter, exchange: Exchange, demand: Demand, receipt: Receipt): void {
  if (demand.dimension === 'concurrency') {
    exchange.defer(() => limiter.release(exchange.id, demand));
  } else if (demand.dimension === 'tpm') {
    exchange.defer(() => {
      const report = exchange.find(usageReport);
      return limiter.adjust(demand, receipt, report === undefined ? 0 : totalTokens(report.usage));
    });
  }
}

/** What each counts by itself can be had from each. */
function warnOfSeparateCounts({ crew, find, log }: Host): void {
  if (crew.size === 1 || !crew.isFirst || find(counters) !== undefined) return;
  log.warn(
    { processes: crew.size },
    'each of these processes counts the limits by itself: set storage.counters to a redis:// URL to have them counted together',
  );
}

/** A misspelt rule would leave an endpoint unlimited in silence. */
function nameUnmatched(host: Host, rules: readonly string[]): void {
  const unmatched = rules.filter((rule) => !host.endpoints().some((endpoint) => endpointMatches(rule, endpoint)));
  if (unmatched.length > 0)
    host.log.info({ rules: unmatched }, `rate-limit.endpoints: this gateway has no ${unmatched.join(', ')}`);
}
