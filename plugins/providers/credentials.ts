/** The credentials of a provider: its own schemes `header` and `query`, and the resolution of the schemes that plugins add. */
import type { Host } from '../../core/contract/contract.ts';
import type { Headers } from '../../core/contract/message.ts';
import { z } from '../../core/contract/schema.ts';
import { fetchOver } from '../../core/tools/network.ts';
import { headerName, headerValue } from '../common/domain/headers-schema.ts';
import type { ComputedAuth, FinalRequest, Target, UpstreamTraits } from '../common/domain/upstreams.ts';
import { scrubText } from '../common/kit/scrub.ts';
import {
  type Credential,
  CredentialError,
  type CredentialScheme,
  type FixedScheme,
  vendorCredentials,
} from '../common/wire/credentials.ts';

const longestReason = 200;
const connectTimeoutMs = 10_000;

/** `auth` of a provider, as its section has it. */
export interface WrittenAuth {
  readonly scheme: string;
  readonly [setting: string]: unknown;
}

const keyMark = (value: string) => value.includes('{key}');

export const headerSchema = z.strictObject({
  header: headerName.describe('Name of the header that carries the key. Write what the vendor documents.'),
  value: headerValue
    .refine(keyMark, 'must contain {key}')
    .describe('Value of that header; {key} is replaced by the key. Write what the vendor documents.'),
});

/** The key in a header. */
const headerScheme: FixedScheme<z.output<typeof headerSchema>> = {
  name: 'header',
  config: headerSchema,
  form: (settings) => settings,
};

/** The key in the query of the address. */
const queryScheme: FixedScheme<{ name: string }> = {
  name: 'query',
  config: z.strictObject({
    name: z
      .string()
      .regex(/^[\w.-]{1,100}$/, 'must be letters, digits, dots, dashes and underscores')
      .describe('Name of the query member that carries the key. Write what the vendor documents.'),
  }),
  form: ({ name }) => ({ query: name }),
};

export const ownSchemes: readonly CredentialScheme[] = [headerScheme, queryScheme];

/** The schemes of all plugins, by name; for use when every plugin is set up. */
export class Schemes {
  readonly #host: Host;
  #known: ReadonlyMap<string, CredentialScheme> | undefined;

  constructor(host: Host) {
    this.#host = host;
  }

  all(): ReadonlyMap<string, CredentialScheme> {
    this.#known ??= new Map(this.#host.extensions(vendorCredentials).map((scheme) => [scheme.name, scheme]));
    return this.#known;
  }

  /** What the provider's traits say. The check of the configuration has found the scheme and its settings to be right. */
  authOf({ scheme: name, ...written }: WrittenAuth): NonNullable<UpstreamTraits['auth']> {
    const scheme = this.all().get(name);
    if (scheme === undefined) throw new Error(`no plugin adds the credential scheme "${name}"`);
    const settings: unknown = scheme.config.parse(written);
    if ('form' in scheme) return scheme.form(settings);
    const { clock, log } = this.#host;
    const open: Opening = ({ key, network }) =>
      scheme.open(settings, key, {
        clock,
        fetch: network === undefined ? fetch : fetchOver(network, connectTimeoutMs),
      });
    return new Computed(open, log);
  }
}

type Opening = (target: Pick<Target, 'key' | 'network'>) => Credential;

/** The credentials of one provider by key, opened at first use; a key has one network. */
class Computed implements ComputedAuth {
  readonly #open: Opening;
  readonly #log: Host['log'];
  readonly #credentials = new WeakMap<Target['key'], Credential>();
  readonly #failing = new Set<string>();

  constructor(open: Opening, log: Host['log']) {
    this.#open = open;
    this.#log = log;
  }

  authorize(target: Pick<Target, 'key' | 'credential' | 'network'>, request: FinalRequest) {
    const { key, credential: name } = target;
    try {
      const headers = this.#credentialOf(target).authorize(request);
      if (headers instanceof Promise) return this.#settled(headers, key, name);
      this.#noteSuccess(name);
      return headers;
    } catch (error) {
      throw this.#failed(error, key, name);
    }
  }

  refused({ key }: Pick<Target, 'key'>, request: FinalRequest): boolean {
    return this.#credentials.get(key)?.refused?.(request) === true;
  }

  async #settled(headers: Promise<Headers>, key: Target['key'], name: string): Promise<Headers> {
    try {
      const ready = await headers;
      this.#noteSuccess(name);
      return ready;
    } catch (error) {
      throw this.#failed(error, key, name);
    }
  }

  #credentialOf(target: Pick<Target, 'key' | 'network'>): Credential {
    let credential = this.#credentials.get(target.key);
    if (credential === undefined) {
      credential = this.#open(target);
      this.#credentials.set(target.key, credential);
    }
    return credential;
  }

  #noteSuccess(name: string): void {
    if (this.#failing.delete(name)) this.#log.info({ credential: name }, 'a credential is usable again');
  }

  /** Logged once for each row of failures, which may be that of thousands of requests. */
  #failed(error: unknown, key: Target['key'], name: string): CredentialError {
    const reason = scrubText(error instanceof Error ? error.message : String(error), key.reveal());
    const message = `the credential could not be obtained: ${reason.slice(0, longestReason)}`;
    if (!this.#failing.has(name)) this.#log.error({ credential: name, reason: message }, unusable);
    this.#failing.add(name);
    return new CredentialError(message, error instanceof Error ? new Error(reason) : undefined);
  }
}

const unusable = 'a credential of a provider is not usable';
