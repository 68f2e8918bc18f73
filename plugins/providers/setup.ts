/** Opens a vendor for one look at its models: a configured one, or one that is to be added, by the same rules as its section. */
import type { Host } from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import { secret } from '../../core/contract/secret.ts';
import { fetchOver } from '../../core/tools/network.ts';
import type { VendorAccess, VendorDraft, VendorSetup } from '../common/domain/admin/vendor-setup.ts';
import { type ProviderConfig, providersSchema } from './config.ts';
import type { Schemes } from './credentials.ts';
import { credentialFaults } from './mistakes.ts';
import { presets } from './presets.ts';
import type { RunningVendors } from './running.ts';
import { filledIn, type SecretLookup } from './secrets/references.ts';
import { networksOf, providerOf } from './vendors.ts';

const connectTimeoutMs = 10_000;
const longestMs = 30_000;
const mostBytes = 32 * 2 ** 20;

interface SetupTools {
  readonly host: Host;
  readonly schemes: Schemes;
  readonly lookup: SecretLookup;
  readonly running: RunningVendors;
}

export function openVendorSetup(tools: SetupTools): VendorSetup {
  return {
    open(draft) {
      const { host, running, schemes } = tools;
      const isConfigured = draft.preset === undefined && draft.speaks === undefined;
      const written = isConfigured ? running.config[draft.name] : undefined;
      if (isConfigured && written === undefined)
        throw new GatewayError('not_found', 'There is no such provider.', { field: 'name' });
      const section = written === undefined ? draftedSection(draft, schemes) : filledIn(written, tools.lookup);
      const key = draft.key ?? section.keys[0];
      if (key === undefined) throw new GatewayError('conflict', 'This provider has no key.', { code: 'no_key' });
      const at = Math.max(0, section.keys.indexOf(key));
      const network = networksOf({ ...section, keyProxies: [section.keyProxies[at]] })?.[0];
      return {
        provider: providerOf(draft.name, section, host, schemes),
        key: secret(key),
        credential: `${draft.name}#test`,
        fetch: isConfigured ? asCallsAreSent(network) : guarded(host, trustedOrigins(draft, running)),
      };
    },
  };
}

/** Refuses what the section would refuse. No message has a value of the draft's key. */
function draftedSection({ name, preset, speaks, key = '' }: VendorDraft, schemes: Schemes): ProviderConfig {
  const parsed = providersSchema.safeParse({ [name]: { preset, speaks, keys: key } });
  const issue = parsed.error?.issues[0];
  if (issue !== undefined) throw refused([...issue.path.slice(1).map(String)].join('.') || 'name', issue.message);
  const section = parsed.data![name]!;
  if (section.keys.length > 0 && section.keys[0]!.startsWith('secret:')) throw refused('key', 'must be the key itself');
  const fault = credentialFaults({ [name]: section }, schemes.all()).find((one) => 'message' in one);
  if (fault !== undefined && 'message' in fault) throw refused(fault.path.slice(1).join('.'), fault.message);
  return section;
}

const refused = (field: string, message: string) =>
  new GatewayError('invalid_request', `${field}: ${message}`, { field });

/** A redirect would take the key elsewhere. */
function asCallsAreSent(network: Parameters<typeof fetchOver>[0]): VendorAccess['fetch'] {
  const send = fetchOver(network, connectTimeoutMs);
  return (url, init) => send(url, { ...init, redirect: 'error' });
}

function guarded(host: Host, trusted: ReadonlySet<string>): VendorAccess['fetch'] {
  return async (url, { headers, signal }) => {
    const allowPrivate = trusted.has(new URL(url).origin);
    const bounds = { timeoutMs: longestMs, maxBytes: mostBytes, allowPrivate };
    return (await host.fetch(url, { headers, signal, ...bounds })) as Awaited<ReturnType<VendorAccess['fetch']>>;
  };
}

/** Where calls may go already, and where the preset leads. */
function trustedOrigins({ preset }: VendorDraft, running: RunningVendors): ReadonlySet<string> {
  const ofPreset = presets().get(preset ?? '')?.provider as { speaks?: Record<string, string> } | undefined;
  const sections = [...Object.values(running.config), ofPreset ?? {}];
  const urls = sections.flatMap(({ speaks = {} }) => Object.values(speaks));
  return new Set(urls.filter((url) => /^https?:/.test(url)).map((url) => new URL(url).origin));
}
