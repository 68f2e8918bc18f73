/** Connects the instruments to their exporters. Loaded only where there is an exporter. */
import { setTimeout as pause } from 'node:timers/promises';
import type { Meter } from '@opentelemetry/api';
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-http';
import { PrometheusExporter } from '@opentelemetry/exporter-prometheus';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { type Resource, resourceFromAttributes } from '@opentelemetry/resources';
import { type IMetricReader, MeterProvider, PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  SamplingDecision,
  type SamplingResult,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import type { Exchange, Host, PluginInstance } from '../../core/contract/contract.ts';
import { listenFailure } from '../../core/contract/schema.ts';
import { batchStatistics, fileStatistics } from '../common/domain/admin/stored-work.ts';
import { vendorBatch } from '../common/domain/calls.ts';
import { authorizations } from '../common/domain/ledger.ts';
import { checkVerdicts } from '../common/guardrails/checks.ts';
import { orderSpans, readTraceParent, trace } from '../common/wire/trace.ts';
import type { TelemetryConfig } from './config.ts';
import { createMeters } from './meters.ts';
import { createTracing } from './tracer.ts';
import { observeSockets } from './upstreams.ts';

const scope = 'model-gateway';

export function openTelemetry(host: Host, config: TelemetryConfig): PluginInstance<TelemetryConfig> {
  const { listen, otlp } = config;
  const resource = resourceFromAttributes({
    'service.name': scope,
    'service.namespace': host.gateway,
    'service.instance.id': host.random.bytes(8).toString('hex'),
  });
  const page =
    listen === undefined
      ? undefined
      : new PrometheusExporter({
          ...pageOf(listen, host.processGroup),
          preventServerStart: true,
          withoutScopeInfo: true,
        });
  const meterProvider = new MeterProvider({ resource, readers: readersOf(config, page) });
  const meters = createMeters(meterProvider.getMeter(scope), host, config.convention);
  observeSockets(meterProvider.getMeter(scope), host);
  observeStoredWork(meterProvider.getMeter(scope), host);
  const tracerProvider = otlp.endpoint === '' ? undefined : tracersOf(config, resource);
  const tracing =
    tracerProvider === undefined ? undefined : createTracing(tracerProvider.getTracer(scope), config.propagate, config);

  if (tracing !== undefined) host.provide(orderSpans, tracing);
  return {
    applies: () => true,
    logFields(exchange) {
      const of = exchange.find(trace);
      return of && { trace_id: of.traceId };
    },
    handle(exchange, next) {
      // The exchange with its answer is the one that counts.
      const stage = exchange.find(vendorBatch);
      if (stage === 'order' || stage === 'estimate') return next();
      meters.begun();
      const endSpan = tracing?.begin(exchange);
      if (tracing === undefined) keepCallersTrace(exchange);
      exchange.defer((outcome) => {
        meters.ended(exchange, outcome);
        endSpan?.(outcome);
      });
      return next();
    },
    lifecycle: {
      start() {
        host.find(authorizations)?.onCharge(meters.charged);
        host.find(checkVerdicts)?.watch(meters.checked);
        return page?.startServer().catch((error: unknown) => {
          throw listenFailure(error, 'telemetry.listen', pageOf(listen!, host.processGroup));
        });
      },
      async stop() {
        // A collector that is away must not keep the gateway from stopping.
        const ended = Promise.allSettled([tracerProvider?.shutdown(), meterProvider.shutdown()]);
        await Promise.race([ended, pause(stopWithinMs, undefined, { ref: false })]);
      },
    },
  };
}

/** So that log lines have it where no traces are sent. */
function keepCallersTrace(exchange: Exchange): void {
  const { traceparent } = exchange.request.headers;
  const of = traceparent === undefined ? undefined : readTraceParent(traceparent);
  if (of !== undefined) exchange.set(trace, of);
}

const stopWithinMs = 5_000;

/** Each process of a machine has a page of its own: the first the port that is configured, the others those that follow. */
function pageOf({ host, port }: { host: string; port: number }, { workerIndex }: Host['processGroup']) {
  return { host, port: port === 0 ? 0 : port + workerIndex - 1 };
}

function readersOf({ otlp }: TelemetryConfig, page: PrometheusExporter | undefined): IMetricReader[] {
  const readers: IMetricReader[] = page === undefined ? [] : [page];
  if (otlp.endpoint === '') return readers;
  const exporter = new OTLPMetricExporter({ url: urlOf(otlp.endpoint, 'metrics'), headers: otlp.headers });
  return [...readers, new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: otlp.interval })];
}

function tracersOf({ otlp, traces }: TelemetryConfig, resource: Resource): TracerProvider {
  const exporter = new OTLPTraceExporter({ url: urlOf(otlp.endpoint, 'traces'), headers: otlp.headers });
  return new TracerProvider({
    resource,
    sampler: new ParentBasedSampler({ root: new LinkedSampler(new TraceIdRatioBasedSampler(traces)) }),
    spanProcessors: [new BatchSpanProcessor({ exporter, exportTimeoutMillis: stopWithinMs })],
  });
}

/** Spans that are linked to an order are sampled as the order was. */
class LinkedSampler implements Sampler {
  readonly #root: Sampler;

  constructor(root: Sampler) {
    this.#root = root;
  }

  shouldSample(...requested: Parameters<Sampler['shouldSample']>): SamplingResult {
    const order = requested[5][0]?.context;
    if (order === undefined) return this.#root.shouldSample(...requested);
    const isSampled = (order.traceFlags & 1) === 1;
    return { decision: isSampled ? SamplingDecision.RECORD_AND_SAMPLED : SamplingDecision.NOT_RECORD };
  }

  toString(): string {
    return `LinkedSampler{${this.#root.toString()}}`;
  }
}

/** As the specification of OTLP over HTTP says: the signal's path below the base. */
function urlOf(endpoint: string, signal: 'metrics' | 'traces'): string {
  return `${endpoint.replace(/\/+$/, '')}/v1/${signal}`;
}

/** Reports nothing without the plugins, or while the database does not answer. */
export function observeStoredWork(meter: Meter, host: Host): void {
  const gauge = (name: string, description: string, unit?: string) =>
    meter.createObservableGauge(`gateway.${name}`, { description, ...(unit && { unit }) });
  const open = gauge('batches.open', 'Batches of the gateway that have not ended; the same in every process.');
  const oldest = gauge('batches.oldest', 'Age of the oldest batch that has not ended; the same in every process.', 's');
  const lines = meter.createObservableCounter('gateway.batches.lines', {
    description: 'Lines of batches that ended in this process, by their result.',
  });
  meter.addBatchObservableCallback(
    async (result) => {
      const statistics = host.find(batchStatistics);
      for (const [name, count] of Object.entries(statistics?.lines ?? {}))
        result.observe(lines, count, { result: name });
      const figures = await statistics?.figures().catch(() => undefined);
      if (figures === undefined) return;
      result.observe(open, figures.open);
      result.observe(oldest, figures.oldestMs / 1_000);
    },
    [open, oldest, lines],
  );
  gauge('bucket.healthy', '1 while the bucket of files gives answers.').addCallback((result) => {
    const awayMs = host.find(fileStatistics)?.bucketAwayMs();
    if (awayMs !== undefined) result.observe(awayMs === 0 ? 1 : 0);
  });
  gauge('files.kept', 'Bytes of all files that are kept; the same in every process.', 'By').addCallback(
    async (result) => {
      const bytes = await host
        .find(fileStatistics)
        ?.keptBytes()
        .catch(() => undefined);
      if (bytes !== undefined) result.observe(bytes);
    },
  );
}
