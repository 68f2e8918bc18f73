/** The vendors that are in use: asked by other plugins, replaced when the section or a stored secret changes. */
import type { Host } from '../../core/contract/contract.ts';
import type { UpstreamHealth } from '../common/domain/admin/upstreams.ts';
import type { Providers } from '../common/domain/upstreams.ts';
import type { ProvidersConfig } from './config.ts';
import type { Schemes } from './credentials.ts';
import { namesIn, type SecretLookup } from './secrets/references.ts';
import { moveGates, type Vendors, vendorsOf } from './vendors.ts';

export interface RunningOptions {
  readonly host: Host;
  readonly schemes: Schemes;
  readonly lookup: SecretLookup;
  /** Called after each replacement. */
  readonly replaced: () => void;
}

export class RunningVendors {
  readonly #options: RunningOptions;
  #config: ProvidersConfig;
  #vendors: Vendors;
  /** Counts changes of secrets: some come while a section is prepared. */
  #refreshes = 0;

  constructor(config: ProvidersConfig, options: RunningOptions) {
    this.#options = options;
    this.#config = config;
    this.#vendors = this.#vendorsOf(config);
  }

  get config(): ProvidersConfig {
    return this.#config;
  }

  get vendors(): Vendors {
    return this.#vendors;
  }

  service(): Providers {
    return {
      find: (name) => this.#vendors.known.get(name),
      list: () => [...this.#vendors.known.values()],
      configured: () => new Map(Object.entries(this.#config).map(([name, { speaks }]) => [name, Object.keys(speaks)])),
      acquireKey: (name, model, except, preference) =>
        this.#vendors.rings.get(name)?.take(model, except, preference) ?? { retryAfterMs: 0 },
      findKey: (name, credential, model) => this.#vendors.rings.get(name)?.findKey(credential, model),
      coolDown: (credential, model, forMs, reason, about) =>
        this.#vendors.ringOfCredential.get(credential)?.coolDown(credential, model, forMs, reason, about),
      isDisabled: (name) => this.#vendors.rings.get(name)?.isDisabled ?? false,
    };
  }

  /** Takes up changed secrets. true: other vendors have keys than before. */
  refresh(): boolean {
    this.#refreshes++;
    const before = [...this.#vendors.known.keys()].join();
    this.#apply(this.#config, this.#vendorsOf(this.#config, this.#vendors));
    return before !== [...this.#vendors.known.keys()].join();
  }

  prepare(changed: ProvidersConfig): () => void {
    const next = this.#vendorsOf(changed, this.#vendors);
    const refreshes = this.#refreshes;
    return () => {
      this.#apply(changed, next);
      if (refreshes !== this.#refreshes) this.refresh();
    };
  }

  /** Whether this text of a secret has answered a call; keys are watched where a provider has several. */
  hasAnswered(health: UpstreamHealth | undefined, name: string, text: string): boolean {
    return Object.entries(this.#config).some(([provider, section]) => {
      if (!namesIn(section).includes(name)) return false;
      const credential = this.#vendors.rings.get(provider)?.credentialOf(text);
      const keys = health?.targets(provider).flatMap((target) => target.keys) ?? [];
      return keys.some(
        (key) => key.credential === credential && (key.firstByteMs !== undefined || key.wholeMs !== undefined),
      );
    });
  }

  #vendorsOf(config: ProvidersConfig, earlier?: Vendors): Vendors {
    const { host, schemes, lookup } = this.#options;
    return vendorsOf(config, host, schemes, lookup, earlier);
  }

  #apply(config: ProvidersConfig, next: Vendors): void {
    moveGates(this.#vendors, next, config);
    this.#config = config;
    this.#vendors = next;
    this.#options.replaced();
  }
}
