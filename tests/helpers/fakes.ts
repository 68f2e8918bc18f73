/** Stand-ins for the core, for tests of one plugin alone: a host with hand-set time and an exchange without sockets. */

import type {
  ContextKey,
  DrainBounds,
  Endpoint,
  Exchange,
  ExtensionPoint,
  Host,
  Outcome,
  Plugin,
  PluginInstance,
  Service,
} from '../../core/contract/contract.ts';
import type { GatewayError } from '../../core/contract/errors.ts';
import type { Extension } from '../../core/contract/extensions.ts';
import type { RegularWork } from '../../core/contract/host-tools.ts';
import type { Answer, AnswerWatcher } from '../../core/contract/message.ts';
import { alone } from '../../core/contract/process-group.ts';
import { Outbound } from '../../core/gateway/outbound.ts';
import { systemClock } from '../../core/gateway/system.ts';
import type { TimelineEvent } from '../../plugins/common/domain/timeline.ts';

export interface FakeHost extends Host {
  /** Moves both clocks. */
  advance(milliseconds: number): void;
  /** Moves the wall clock alone, in either direction. */
  jump(milliseconds: number): void;
  readonly lines: { level: string; fields: object; message: string }[];
  readonly intervals: { intervalMs: number; name: string; work: RegularWork }[];
}

/** Where a gateway takes orders of images and videos: without them, models of these kinds are not listed. */
export const orderEndpoints: readonly Endpoint[] = [
  { method: 'POST', path: '/v1/images/generations', operation: 'images', modelKind: 'image' },
  { method: 'POST', path: '/v1/videos', operation: 'videos', modelKind: 'video' },
];

const outbound = new Outbound(() => ({ proxy: '', direct: [] }), systemClock);

type Chosen = 'gateway' | 'schema' | 'directory' | 'mode' | 'endpoints';

export function fakeHost(options: Partial<Pick<Host, Chosen>> = {}): FakeHost {
  const services = new Map<Service<unknown>, unknown>();
  const extensions = new Map<ExtensionPoint, Extension[]>();
  const lines: FakeHost['lines'] = [];
  const intervals: FakeHost['intervals'] = [];
  let time = 1_800_000_000_000;
  let jumped = 0;
  let seed = 1;
  const write = (level: string) => (fields: object, message: string) => void lines.push({ level, fields, message });
  const fraction = () => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
    return seed / 2 ** 32;
  };
  return {
    gateway: 'test',
    schema: 'test',
    directory: '/nonexistent',
    commonDirectory: options.directory ?? '/nonexistent',
    processGroup: alone,
    mode: 'serve',
    endpoints: () => [],
    ...options,
    log: {
      debug: write('debug'),
      info: write('info'),
      warn: write('warn'),
      error: write('error'),
      record: (message, json) => write('info')(JSON.parse(json) as object, message),
    },
    clock: { now: () => time + jumped, monotonic: () => time },
    fetch: (address, options) => outbound.fetch('test', address, options),
    random: {
      fraction,
      bytes: (count) => Buffer.from(Array.from({ length: count }, () => Math.floor(fraction() * 256))),
    },
    get<T>(service: Service<T>): T {
      if (!services.has(service)) throw new Error(`the test provides no "${service.name}"`);
      return services.get(service) as T;
    },
    find: <T>(service: Service<T>) => services.get(service) as T | undefined,
    provide: (service, value) => void services.set(service, value),
    extend: (point, extension) => void extensions.set(point, [...(extensions.get(point) ?? []), extension]),
    extensions: <T extends Extension>(point: ExtensionPoint<T>) => (extensions.get(point) ?? []) as T[],
    every: (intervalMs, name, work) => void intervals.push({ intervalMs, name, work }),
    perform: () => Promise.reject(new Error('the test has no chain')),
    advance: (milliseconds) => {
      time += milliseconds;
    },
    jump: (milliseconds) => {
      jumped += milliseconds;
    },
    lines,
    intervals,
  };
}

export interface FakeExchange extends Exchange {
  /** Runs the deferred work, last in first out. */
  end(outcome?: Partial<Outcome>): Promise<void>;
  /** Runs what waits for the moment before sending. */
  send(): Promise<void>;
  readonly failure: GatewayError | undefined;
  readonly outlives: DrainBounds | undefined;
  readonly watcher: AnswerWatcher | undefined;
  abort(): void;
  readonly lines: FakeHost['lines'];
}

let requestCount = 0;

/** A request id, as the core makes them: later ones are greater where they arrive in the same millisecond too. */
export function requestIdAt(at: number): string {
  const [time, count] = [at.toString(16).padStart(12, '0'), (++requestCount).toString(16).padStart(6, '0')];
  const random = crypto.randomUUID().slice(-12);
  return `${time.slice(0, 8)}-${time.slice(8)}-7${count.slice(0, 3)}-8${count.slice(3)}-${random}`;
}

export function fakeExchange(
  options: {
    endpoint?: Partial<Endpoint>;
    request?: Partial<Exchange['request']>;
    id?: string;
    facts?: [ContextKey<unknown>, unknown][];
    /** Where its log lines go too. */
    lines?: FakeHost['lines'];
  } = {},
): FakeExchange {
  const facts = new Map<ContextKey<unknown>, unknown>(options.facts);
  const deferred: ((outcome: Outcome) => void | Promise<void>)[] = [];
  const hooks: ((sending: Exchange) => void | Promise<void>)[] = [];
  const controller = new AbortController();
  let failure: GatewayError | undefined;
  let outlives: DrainBounds | undefined;
  let watcher: AnswerWatcher | undefined;
  const lines = options.lines ?? [];
  const write = (level: string) => (fields: object, message: string) =>
    void lines.push({ level, fields: { ...exchange.log.fields(), ...fields }, message });
  const exchange: FakeExchange = {
    id: options.id ?? requestIdAt(1_800_000_000_000),
    endpoint: { method: 'POST', path: '/v1/test', operation: 'test', ...options.endpoint },
    request: {
      method: 'POST',
      path: '/v1/test',
      query: new URLSearchParams(),
      headers: {},
      params: {},
      remoteAddress: '127.0.0.1',
      body: new Uint8Array(),
      bodyBytes: 0,
      ...options.request,
    },
    receivedAt: 1_800_000_000_000,
    log: {
      ...{ debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') },
      fields: () => ({ request_id: exchange.id }),
    },
    lines,
    signal: controller.signal,
    get<T>(fact: ContextKey<T>): T {
      if (!facts.has(fact)) throw new Error(`the context value "${fact.name}" is not set`);
      return facts.get(fact) as T;
    },
    find: <T>(fact: ContextKey<T>) => facts.get(fact) as T | undefined,
    set: (fact, value) => void facts.set(fact, value),
    defer: (work) => void deferred.push(work),
    beforeEnd: () => undefined,
    beforeSend: (work) => void hooks.push(work),
    beforeFirstByte: (work) => void hooks.push(work),
    continueAfterDisconnect: (bounds) => {
      outlives = bounds;
    },
    get outlives() {
      return outlives;
    },
    fail: (error) => {
      failure ??= error;
    },
    async end(outcome = {}) {
      const whole: Outcome = { kind: 'complete', status: 200, bytesOut: 0, totalMs: 1, ...outcome };
      for (const work of deferred.splice(0).reverse()) await work(whole);
    },
    async send() {
      for (const hook of hooks) await hook(exchange);
    },
    get failure() {
      return failure;
    },
    replaceBody: async (body) => {
      Object.assign(exchange.request, { body });
      await exchange.endpoint.open?.(exchange);
    },
    watch: (wanted) => {
      watcher = wanted;
    },
    get watcher() {
      return watcher;
    },
    abort: () => controller.abort(),
    fork: () => {
      throw new Error('attempts at the same time are tested with the exchange of the core');
    },
  };
  return exchange;
}

/** Validates `section` by the plugin's own schema and sets the plugin up. */
export async function setUp<Config>(
  plugin: Plugin<Config>,
  host: Host,
  section: unknown = {},
): Promise<PluginInstance> {
  const schema = plugin.config as unknown as { parse(value: unknown): Config };
  return plugin.setup(host, schema.parse(section));
}

/** Validates a changed section by the plugin's own schema and has the part get ready for it; what it returns takes it up. */
export async function prepare<Config>(
  plugin: Plugin<Config>,
  part: PluginInstance,
  section: unknown = {},
): Promise<() => void> {
  const schema = plugin.config as unknown as { parse(value: unknown): Config };
  return part.reload!.prepare!(schema.parse(section));
}

export const okAnswer: Answer = { status: 200, headers: { 'content-type': 'application/json' }, body: '{}' };

/** What a timeline says, a line each. */
export const wordsIn = (notes: readonly TimelineEvent[]): string[] =>
  notes.map(({ kind, values }) => kind.render(...((typeof values === 'function' ? values() : values) ?? [])));
