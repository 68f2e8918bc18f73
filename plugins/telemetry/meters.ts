/** The instruments, each with one name and unit. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Meter } from '@opentelemetry/api';
import type { Exchange, Host, Outcome } from '../../core/contract/contract.ts';
import { regularWorks } from '../../core/contract/outage.ts';
import { outboundCalls } from '../../core/contract/outbound.ts';
import { freeShareOf } from '../../core/tools/unwritable.ts';
import { ledgerQueries } from '../common/domain/admin/ledger.ts';
import { upstreamAdmin } from '../common/domain/admin/upstreams.ts';
import { attempts, spendGuard as moneyMeter } from '../common/domain/calls.ts';
import { counters } from '../common/domain/counters.ts';
import { database } from '../common/domain/database.ts';
import { type AuthorizationCharge, servedBy } from '../common/domain/ledger.ts';
import { model } from '../common/domain/models.ts';
import type { CheckVerdict } from '../common/guardrails/checks.ts';
import { attemptAttributes, type SpanSettings } from './attributes.ts';
import { durationBounds, modelMeters } from './generation.ts';
import { observeUpstreams } from './upstreams.ts';

export interface Meters {
  begun(): void;
  ended(exchange: Exchange, outcome: Outcome): void;
  /** A task has ended and was paid. */
  charged(charge: AuthorizationCharge): void;
  /** A check of guardrails has given its verdict. */
  checked(verdict: CheckVerdict): void;
}

export function createMeters(meter: Meter, host: Host, convention: SpanSettings['convention']): Meters {
  let inFlight = 0;
  meter
    .createObservableGauge('gateway.requests.in_flight', { description: 'Requests under way in this process.' })
    .addCallback((result) => result.observe(inFlight));
  const requests = meter.createCounter('gateway.requests', { description: 'Requests that have ended, by their end.' });
  const tries = meter.createCounter('gateway.upstream.attempts', {
    description: 'Attempts at upstreams, by their end.',
  });
  const ofModels = modelMeters(meter, convention);
  const charged = meter.createCounter('gateway.charged.nano_usd', {
    description: 'What calls and tasks were charged, in billionths of a US dollar.',
  });
  const ownCost = meter.createCounter('gateway.own_cost.nano_usd', {
    description: 'What these cost the operator, as far as catalogue and price book know it.',
  });
  const count = ({ model, provider, cost, own }: AuthorizationCharge) => {
    // By model and upstream, not by account: accounts are without number.
    const labels = { 'gen_ai.request.model': model, 'gen_ai.provider.name': provider ?? 'none' };
    charged.add(Number(cost), labels);
    if (own !== undefined) ownCost.add(Number(own), labels);
  };
  observeRuntime(meter, host);
  observeUpstreams(meter, host);
  measureOutbound(meter, host);

  return {
    begun() {
      inFlight += 1;
    },
    ended(exchange, outcome) {
      inFlight -= 1;
      const { status, kind } = outcome;
      requests.add(1, { operation: exchange.endpoint.operation, outcome: kind, status });
      for (const attempt of exchange.find(attempts) ?? []) tries.add(1, attemptAttributes(attempt));
      ofModels(exchange, outcome);
      const charge = chargeOf(exchange);
      if (charge !== undefined) count(charge);
    },
    charged: count,
    checked: measureChecks(meter),
  };
}

/** undefined: it was not charged. */
function chargeOf(exchange: Exchange): AuthorizationCharge | undefined {
  const amounts = exchange.find(moneyMeter)?.charged?.();
  if (amounts === undefined) return undefined;
  // An answer without an attempt has no provider, even if attempts failed before.
  const provider = exchange.find(servedBy) === undefined ? exchange.find(attempts)?.at(-1)?.provider : undefined;
  return { model: exchange.find(model)?.id ?? 'unknown', provider, cost: amounts.cost, own: amounts.own };
}

/** Figures of the process, read when the metrics are collected. */
function observeRuntime(meter: Meter, host: Host): void {
  const delay = monitorEventLoopDelay({ resolution: 20 });
  delay.enable();
  meter
    .createObservableGauge('nodejs.eventloop.delay.p99', { unit: 's', description: 'Since the last look.' })
    .addCallback((result) => {
      result.observe(delay.percentile(99) / 1e9);
      delay.reset();
    });
  meter
    .createObservableGauge('process.memory.usage', { unit: 'By', description: 'Memory of this process.' })
    .addCallback((result) => result.observe(process.memoryUsage.rss()));
  meter
    .createObservableCounter('process.cpu.time', { unit: 's', description: 'CPU time of this process.' })
    .addCallback((result) => {
      const { user, system } = process.cpuUsage();
      result.observe(user / 1e6, { 'cpu.mode': 'user' });
      result.observe(system / 1e6, { 'cpu.mode': 'system' });
    });
  meter
    .createObservableGauge('gateway.database.healthy', { description: '1 while statements get answers.' })
    .addCallback((result) => {
      const store = host.find(database);
      if (store !== undefined) result.observe(store.healthy() ? 1 : 0);
    });
  meter
    .createObservableGauge('gateway.counters.healthy', { description: '1 while the shared counters give answers.' })
    .addCallback((result) => {
      const shared = host.find(counters);
      if (shared !== undefined) result.observe(shared.healthy() ? 1 : 0);
    });
  observeOwnWork(meter, host);
}

function measureChecks(meter: Meter): Meters['checked'] {
  const duration = meter.createHistogram('gateway.guardrail.duration', {
    unit: 's',
    description: 'Verdicts of checks of guardrails, by check, stage and verdict.',
    advice: { explicitBucketBoundaries: durationBounds },
  });
  return ({ ms, ...labels }) => duration.record(ms / 1_000, labels);
}

function measureOutbound(meter: Meter, host: Host): void {
  const duration = meter.createHistogram('gateway.outbound.duration', {
    unit: 's',
    description: 'Requests of plugins to services outside, until the head of the answer.',
    advice: { explicitBucketBoundaries: durationBounds },
  });
  host.find(outboundCalls)?.watch(({ ms, ...labels }) => duration.record(ms / 1_000, labels));
}

/** Figures that need no database, so that they are reported while it is away. */
function observeOwnWork(meter: Meter, host: Host): void {
  const gauge = (name: string, description: string, unit?: string) =>
    meter.createObservableGauge(`gateway.${name}`, { description, ...(unit && { unit }) });
  const pending = gauge('journal.pending', 'Journal records that the ledger has not yet.');
  const used = gauge('journal.used', 'Used share of the bound on the journal: at 1 calls are refused.');
  meter.addBatchObservableCallback(
    (result) => {
      const journal = host.find(ledgerQueries)?.journal();
      if (journal === undefined) return;
      result.observe(pending, journal.rows);
      result.observe(used, journal.share);
    },
    [pending, used],
  );
  gauge('disk.free', 'Free share of the disk of the data directory.').addCallback((result) => {
    const free = freeShareOf(host.directory);
    if (free !== undefined) result.observe(free);
  });
  gauge('work.failing', 'Kinds of regular work of this process that fail.').addCallback((result) =>
    result.observe(host.find(regularWorks)?.failing().length ?? 0),
  );
  gauge('certificates.left', 'Until a certificate for a vendor expires.', 's').addCallback((result) => {
    for (const { provider, use, expiresAt } of host.find(upstreamAdmin)?.certificates() ?? [])
      result.observe((expiresAt - host.clock.now()) / 1_000, { provider, use });
  });
}
