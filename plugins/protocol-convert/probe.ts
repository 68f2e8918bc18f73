/** Tries an upstream out: the smallest real call in its own protocol, by one of its keys, at nobody's charge. */
import type { Answer, Host, UpstreamRequest } from '../../core/contract.ts';
import type { Probe, ProbeChoice, ProbeDesk, ProbeResult } from '../../core/desk.ts';
import { GatewayError, UpstreamError } from '../../core/errors.ts';
import { scrubText } from '../../core/scrub.ts';
import { mergeTraits } from '../../core/traits.ts';
import { type Call, catalog, type Model, type Provider, providers, type Target } from '../../core/vocabulary.ts';
import type { Prompt } from './canon.ts';
import { Losses } from './losses.ts';
import { ProbeReader } from './probe-reader.ts';
import type { Protocol } from './protocol.ts';
import { protocolNamed } from './protocols/index.ts';
import { makerOf } from './translate-call.ts';
import { wordUpstreamRequest } from './upstream-request.ts';

/** Models that think first need room to come to a word. */
const maxOutputTokens = 256;
const question: Prompt = {
  turns: [{ role: 'user', parts: [{ kind: 'text', text: 'Reply with the one word: ok' }] }],
  tools: [],
  maxOutputTokens,
};
/** Somebody waits for it, in an exchange that ends after a minute. */
const longest = { connectMs: 10_000, firstByteMs: 25_000, idleMs: 8_000, totalMs: 50_000 } as const;
const longestError = 500;

type House = Pick<Host, 'clock' | 'log' | 'find'>;
type Send = (request: UpstreamRequest) => Promise<Answer>;

/** One call, as far as it is settled before it is sent. */
interface Wording {
  readonly target: Target;
  readonly protocol: Protocol;
  readonly stream: boolean;
  readonly request: UpstreamRequest;
}

export function openProbes(house: House): ProbeDesk {
  return {
    choices: (name) => choicesOf(knownProvider(house, name), house.find(catalog)?.list() ?? []),
    async probe(wanted, send) {
      const wording = wordProbe(house, wanted);
      const result = await tryOut(house, wording, send);
      const { ok, status, totalMs, error } = result;
      house.log.info({ ...wanted, ok, status, totalMs, error }, 'an upstream was tried out');
      return result;
    },
  };
}

function choicesOf(provider: Provider, models: readonly Model[]): ProbeChoice[] {
  const protocols = Object.keys(provider.speaks).filter((name) => protocolNamed(name) !== undefined);
  if (protocols.length === 0) return [];
  return models
    .filter(({ kind }) => kind === 'chat')
    .flatMap(({ id, targets }) =>
      targets
        .filter((target) => target.provider === provider.name)
        .slice(0, 1)
        .map((target) => ({ model: id, upstreamModel: target.model, protocols })),
    );
}

function knownProvider({ find }: House, name: string): Provider {
  const provider = find(providers)?.find(name);
  if (provider === undefined) throw nothing('provider', 'provider, or it has no key');
  return provider;
}

const nothing = (field: string, what: string) => new GatewayError('not_found', `There is no such ${what}.`, { field });

/** Throws not_found for what is not configured. */
function wordProbe(house: House, { provider: name, credential, model: id, protocol: asked }: Probe): Wording {
  const provider = knownProvider(house, name);
  const key = house.find(providers)?.keyNamed(name, credential)?.key;
  if (key === undefined) throw nothing('credential', 'key of this provider');
  const model = house.find(catalog)?.find(id);
  const choice = model === undefined ? undefined : choicesOf(provider, [model])[0];
  if (model === undefined || choice === undefined) throw nothing('model', 'chat model of this provider');
  const spoken = choice.protocols.find((each) => asked === undefined || each === asked);
  if (spoken === undefined) throw nothing('protocol', 'protocol of this provider');
  const listed = model.targets.find((target) => target.provider === name);
  const target: Target = {
    provider: name,
    model: choice.upstreamModel,
    protocol: spoken,
    baseUrl: provider.speaks[spoken]!,
    key,
    credential,
    upstream: hurried(provider.protocolTraits?.[spoken] ?? provider.traits),
    traits: mergeTraits(mergeTraits(provider.dialect?.[spoken], model.traits), listed?.traits),
  };
  const protocol = protocolNamed(spoken)!;
  const stream = target.traits.streams !== 'never';
  return { target, protocol, stream, request: requestOf(target, protocol, stream, model.maxOutputTokens) };
}

function hurried(upstream: Target['upstream']): Target['upstream'] {
  const { connectTimeoutMs, firstByteTimeoutMs, idleTimeoutMs } = upstream;
  return {
    ...upstream,
    connectTimeoutMs: Math.min(connectTimeoutMs, longest.connectMs),
    firstByteTimeoutMs: Math.min(firstByteTimeoutMs, longest.firstByteMs),
    idleTimeoutMs: Math.min(idleTimeoutMs, longest.idleMs),
    drain: undefined,
  };
}

function requestOf(target: Target, protocol: Protocol, stream: boolean, most: number | undefined): UpstreamRequest {
  const { path, body } = protocol.codec.encodeRequest(question, {
    target,
    traits: target.traits,
    maker: makerOf(target),
    losses: new Losses(protocol.codec.spelling),
    stream,
    maxOutputTokens: most,
  });
  const prepared = { path, body: Buffer.from(JSON.stringify(body)), dropped: [] };
  return wordUpstreamRequest(protocol, { headers: {} }, prepared, target, stream);
}

/** Whatever the upstream does is a result. */
async function tryOut({ clock }: House, wording: Wording, send: Send): Promise<ProbeResult> {
  const { target, protocol, stream, request } = wording;
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
    failure = wireWords(error);
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

/** Operators are told what broke, as far as it is the line's; what is a bug of ours is not told to them. */
function wireWords(error: unknown): string {
  if (error instanceof UpstreamError) {
    const { code } = (error.cause ?? {}) as NodeJS.ErrnoException;
    const words = error.message === '' ? 'the connection failed' : error.message;
    return code === undefined || words.includes(code) ? words : `${words} (${code})`;
  }
  if (error instanceof GatewayError) return error.message;
  throw error;
}
