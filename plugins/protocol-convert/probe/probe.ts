/**
 * Test calls to an upstream: the smallest real call in its own protocol, with one of its keys, charged to no account.
 */

import type { Host, UpstreamRequest } from '../../../core/contract/contract.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Answer } from '../../../core/contract/message.ts';
import { UpstreamError } from '../../../core/contract/upstream-failures.ts';
import { DroppedParameters } from '../../common/canonical/dropped-parameters.ts';
import type { Prompt } from '../../common/canonical/prompt.ts';
import type { Probe, ProbeChoice, ProbeResult, UpstreamProbes } from '../../common/domain/admin/upstreams.ts';
import type { Call } from '../../common/domain/calls.ts';
import { catalog, type Model, protocolsOf } from '../../common/domain/models.ts';
import { mergeTraits } from '../../common/domain/traits.ts';
import { type Provider, providers, type Target } from '../../common/domain/upstreams.ts';
import { scrubText } from '../../common/kit/scrub.ts';
import { buildUpstreamRequest } from '../../common/kit/upstream-request.ts';
import type { WireProtocol } from '../../common/wire/protocols.ts';
import { makerOf } from '../translate/call.ts';
import { ProbeReader } from './reader.ts';

/** Reasoning models need room for tokens before their first word. */
const maxOutputTokens = 256;
const question: Prompt = {
  turns: [{ role: 'user', parts: [{ kind: 'text', text: 'Reply with the one word: ok' }] }],
  tools: [],
  maxOutputTokens,
};
/** The console waits for the result in an exchange that ends after a minute. */
const longest = { connectMs: 10_000, firstByteMs: 25_000, idleMs: 8_000, totalMs: 50_000 } as const;
const longestError = 500;

type ProbeServices = Pick<Host, 'clock' | 'log' | 'find'> & {
  protocolNamed(name: string): WireProtocol | undefined;
};
type Send = (request: UpstreamRequest) => Promise<Answer>;

/** One call, as far as it is known before it is sent. */
interface ProbeInput {
  readonly target: Target;
  readonly protocol: WireProtocol;
  readonly stream: boolean;
  readonly request: UpstreamRequest;
}

export function openProbes(services: ProbeServices): UpstreamProbes {
  return {
    choices: (name) => choicesOf(services, knownProvider(services, name), services.find(catalog)?.list() ?? []),
    async probe(wanted, send) {
      const input = encodeProbe(services, wanted);
      const result = await runProbe(services, input, send);
      const { ok, status, totalMs, error } = result;
      services.log.info({ ...wanted, ok, status, totalMs, error }, 'an upstream was tried out');
      return result;
    },
  };
}

function choicesOf({ protocolNamed }: ProbeServices, provider: Provider, models: readonly Model[]): ProbeChoice[] {
  return models
    .filter(({ kind }) => kind === 'chat')
    .flatMap(({ id, targets }) => {
      const target = targets.find((one) => one.provider === provider.name);
      if (target === undefined) return [];
      const protocols = protocolsOf(target, provider).filter((name) => protocolNamed(name) !== undefined);
      return protocols.length === 0 ? [] : [{ model: id, upstreamModel: target.model, protocols }];
    });
}

function knownProvider({ find }: ProbeServices, name: string): Provider {
  const provider = find(providers)?.find(name);
  if (provider === undefined) throw notConfigured('provider', 'provider, or it has no key');
  return provider;
}

const notConfigured = (field: string, what: string) =>
  new GatewayError('not_found', `There is no such ${what}.`, { field });

/** Throws not_found for a provider, key or model that is not configured. */
function encodeProbe(
  services: ProbeServices,
  { provider: name, credential, model: id, protocol: requested }: Probe,
): ProbeInput {
  const provider = knownProvider(services, name);
  const named = services.find(providers)?.findKey(name, credential);
  if (named === undefined) throw notConfigured('credential', 'key of this provider');
  const model = services.find(catalog)?.find(id);
  const choice = model === undefined ? undefined : choicesOf(services, provider, [model])[0];
  if (model === undefined || choice === undefined) throw notConfigured('model', 'chat model of this provider');
  const protocolName = choice.protocols.find((each) => requested === undefined || each === requested);
  if (protocolName === undefined) throw notConfigured('protocol', 'protocol of this provider');
  const listed = model.targets.find((target) => target.provider === name);
  const target: Target = {
    provider: name,
    model: choice.upstreamModel,
    protocol: protocolName,
    baseUrl: provider.speaks[protocolName]!,
    key: named.key,
    credential,
    network: named.network,
    headers: listed?.headers,
    upstream: withShortTimeouts(provider.protocolTraits?.[protocolName] ?? provider.traits),
    traits: mergeTraits(mergeTraits(provider.dialect?.[protocolName], model.traits), listed?.traits),
  };
  const protocol = services.protocolNamed(protocolName)!;
  const stream = target.traits.streams !== 'never';
  return { target, protocol, stream, request: requestOf(target, protocol, stream, model.maxOutputTokens) };
}

function withShortTimeouts(upstream: Target['upstream']): Target['upstream'] {
  const { connectTimeoutMs, firstByteTimeoutMs, idleTimeoutMs } = upstream;
  return {
    ...upstream,
    connectTimeoutMs: Math.min(connectTimeoutMs, longest.connectMs),
    firstByteTimeoutMs: Math.min(firstByteTimeoutMs, longest.firstByteMs),
    idleTimeoutMs: Math.min(idleTimeoutMs, longest.idleMs),
    drain: undefined,
  };
}

function requestOf(target: Target, protocol: WireProtocol, stream: boolean, most: number | undefined): UpstreamRequest {
  const { path, body } = protocol.codec.encodeRequest(question, {
    target,
    traits: target.traits,
    maker: makerOf(target),
    dropped: new DroppedParameters({}),
    stream,
    maxOutputTokens: most,
  });
  const prepared = { path, body: Buffer.from(JSON.stringify(body)), dropped: [] };
  return buildUpstreamRequest(protocol, { headers: {} }, prepared, target, stream);
}

/** Every behaviour of the upstream is a result. */
async function runProbe({ clock }: ProbeServices, input: ProbeInput, send: Send): Promise<ProbeResult> {
  const { target, protocol, stream, request } = input;
  const key = target.key.reveal();
  const startedMs = clock.monotonic();
  const reader = new ProbeReader(protocol, callOf(target, stream), { clock, startedMs, longestMs: longest.totalMs });
  let status: number | undefined;
  let failure: string | undefined;
  try {
    const answer = await send(request);
    status = answer.status;
    failure = await reader.read(answer);
  } catch (error) {
    failure = transportError(error);
  }
  return {
    ok: failure === undefined,
    protocol: target.protocol,
    upstreamModel: target.model,
    status,
    firstByteMs: reader.firstByteMs,
    totalMs: clock.monotonic() - startedMs,
    error: failure === undefined ? undefined : scrubText(failure, key).slice(0, longestError),
    text: scrubText(reader.text, key),
    usage: reader.usage,
  };
}

function callOf({ model, protocol }: Target, stream: boolean): Call {
  return { protocol, model, stream, billable: true, inputTokens: 16, maxOutputTokens, choices: 1 };
}

/** Shows operators what failed on the connection; internal errors are not shown. */
function transportError(error: unknown): string {
  if (error instanceof UpstreamError) {
    const { code } = (error.cause ?? {}) as NodeJS.ErrnoException;
    const text = error.message === '' ? 'the connection failed' : error.message;
    return code === undefined || text.includes(code) ? text : `${text} (${code})`;
  }
  if (error instanceof GatewayError) return error.message;
  throw error;
}
