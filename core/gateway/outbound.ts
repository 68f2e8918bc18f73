/** `host.fetch`: requests of plugins to services outside, by the gateway's proxy and certificates, guarded, bounded and measured. */
import type { UpstreamNetwork } from '../contract/exchange.ts';
import type { Clock } from '../contract/host-tools.ts';
import type { FetchOptions, OutboundCall, OutboundCalls } from '../contract/outbound.ts';
import { GuardedClient, Unfetchable } from '../tools/guarded-fetch.ts';
import { networkOf } from '../tools/network-config.ts';
import type { GatewaySettings } from './config.ts';

const defaultTimeoutMs = 10_000;
const defaultMaxBytes = 2 ** 20;

export class Outbound implements OutboundCalls {
  readonly #settings: () => GatewaySettings['outbound'];
  readonly #clock: Clock;
  readonly #listeners: ((call: OutboundCall) => void)[] = [];
  /** Made with the first request. */
  #client: GuardedClient | undefined;
  #known: { readonly of: GatewaySettings['outbound']; readonly network: UpstreamNetwork | undefined } | undefined;

  constructor(settings: () => GatewaySettings['outbound'], clock: Clock) {
    this.#settings = settings;
    this.#clock = clock;
  }

  watch(listener: (call: OutboundCall) => void): void {
    this.#listeners.push(listener);
  }

  async fetch(plugin: string, address: string, options: FetchOptions = {}): Promise<Response> {
    const { signal, timeoutMs = defaultTimeoutMs, maxBytes = defaultMaxBytes, allowPrivate = false } = options;
    const limit = AbortSignal.timeout(timeoutMs);
    const began = this.#clock.monotonic();
    const end = (outcome: OutboundCall['outcome']) => {
      const call = { plugin, outcome, ms: this.#clock.monotonic() - began };
      for (const listener of this.#listeners) listener(call);
    };
    this.#client ??= new GuardedClient({ allowPrivate: false, maxBytes: defaultMaxBytes });
    try {
      const answer = await this.#client.fetch(
        address,
        { ...options, maxBytes, signal: signal === undefined ? limit : AbortSignal.any([signal, limit]) },
        (host) => this.#networkTo(host),
        allowPrivate ? URL.parse(address)?.origin : undefined,
      );
      end('answered');
      return answer;
    } catch (error) {
      if (error instanceof Unfetchable) end('refused');
      else if (signal?.aborted) end('aborted');
      else end(limit.aborted ? 'timeout' : 'failed');
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.#client?.close();
  }

  /** The way to a host; undefined: directly. */
  #networkTo(host: string): UpstreamNetwork | undefined {
    const settings = this.#settings();
    if (this.#known?.of !== settings) this.#known = { of: settings, network: networkOf(settings) };
    const { network } = this.#known;
    const isDirect = settings.direct.some((name) => host === name || host.endsWith(`.${name}`));
    if (network?.proxy === undefined || !isDirect) return network;
    const { proxy: _proxy, ...others } = network;
    return { ...others, name: `${network.name} direct` };
  }
}
