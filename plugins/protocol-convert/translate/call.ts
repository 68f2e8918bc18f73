/**
 * A call to an upstream of another protocol: the request is converted to the canonical format and then encoded for the
 * upstream; the answer is converted back.
 */

import { type Exchange, type Next, upstreamRequest } from '../../../core/contract/contract.ts';
import type { Answer } from '../../../core/contract/message.ts';
import { UpstreamRefusal } from '../../../core/contract/upstream-failures.ts';
import type { JsonObject } from '../../../core/json/json.ts';
import type { ClientCodec, EncodedRequest, ReplyCodec } from '../../common/canonical/codec.ts';
import { DroppedParameters } from '../../common/canonical/dropped-parameters.ts';
import type { MediaPart, Part, Prompt } from '../../common/canonical/prompt.ts';
import { model } from '../../common/domain/models.ts';
import type { Traits } from '../../common/domain/traits.ts';
import type { Target } from '../../common/domain/upstreams.ts';
import { hasStrayResult, requireAnswerable } from '../../common/encoding/history.ts';
import { keepAliveFrame } from '../../common/kit/sse.ts';
import { buildUpstreamRequest } from '../../common/kit/upstream-request.ts';
import { type IsPriced, refuseUnpriced } from '../../common/wire/named.ts';
import type { Opened, WireProtocol } from '../../common/wire/protocols.ts';
import {
  type Attempt,
  accountOf,
  checkDropped,
  pricedTools,
  recordConversion,
  shapeFor,
  type Tools,
} from '../dependencies.ts';
import { type Answered, relayAnswer } from '../relay/relay.ts';
import { relays, type SpokenProtocol } from '../relay/variants.ts';
import { sessionKeyOf } from '../request/session-key.ts';
import { compactionPrompt } from '../state/compaction.ts';
import { mustEmulate } from '../state/emulation.ts';
import { type AnswerTransforms, answerTransforms, readsPrompt } from '../transforms/chain.ts';
import { withRepeated } from '../transforms/repeated-texts.ts';
import { clientCallId, withVendorIds } from './call-ids.ts';
import { ConversationDigest } from './conversation-digest.ts';
import { defaultFetchOptions, fetchMedia } from './fetch-media.ts';
import { boundsOf, encodedBody, isLarge, pause } from './large-body.ts';
import { ResponseTranslation } from './response-mapping.ts';
import { foreignRefusal } from './upstream-error.ts';

/** Identifies the maker of opaque state, so that only this maker gets it back. */
export function makerOf({ protocol, provider, model: name }: Target): string {
  return `${protocol}/${provider}/${name}`;
}

/** Identifies the vendor that gave a call its id. */
function callIdMarks(exchange: Exchange, { protocol, provider }: Target, { sealer }: Tools): [string, ...string[]] {
  return sealer.marks(`call ids ${protocol}/${provider}`, accountOf(exchange));
}

/**
 * Whether the protocols or the answer modes (streamed, whole) differ, or the upstream lacks a feature of its protocol.
 */
export function mustTranslate(opened: Opened, upstream: SpokenProtocol, target: Target): boolean {
  const { protocol, call, decodeWith, compaction } = opened;
  if (upstream.name !== protocol.name && !relays(upstream, protocol.name)) return true;
  if ((decodeWith !== undefined || compaction !== undefined) && mustEmulate(opened, target)) return true;
  const { streams } = target.traits;
  return call.billable && streams !== undefined && streamsUpstream(call.stream, target) !== call.stream;
}

function streamsUpstream(wanted: boolean, { traits }: Target): boolean {
  return wanted ? traits.streams !== 'never' : traits.streams === 'only';
}

/** The client's answer. Throws as `relayAnswer` does, and GatewayErrors for what this target cannot serve. */
export async function translateCall(attempt: Attempt, next: Next): Promise<Answer> {
  const { exchange, opened, upstream, target, tools } = attempt;
  const stream = streamsUpstream(opened.call.stream, target);
  const request = await encodeRequest(attempt);
  const { encoded, dropped: droppedFields, large, precedent } = request;
  recordConversion(exchange, upstream.name, opened.protocol.name, droppedFields, tools);
  checkDropped(droppedFields, tools.config);
  const { path } = encoded;
  const prepared = { path, body: await encodedBody(exchange, encoded.body, large), dropped: droppedFields };
  // Client headers have no meaning in another protocol.
  const bare = { ...exchange.request, headers: {} };
  exchange.set(upstreamRequest, buildUpstreamRequest(upstream, bare, prepared, target, stream));
  const translation = translationOf(attempt, { ...encoded, precedent });
  const answered: Answered = {
    ...opened,
    protocol: upstream,
    call: { ...opened.call, protocol: upstream.name, stream },
    reshape: translation,
  };
  try {
    const hooks = { issued: tools.ids.recording(exchange, opened, target), otherForm: () => translation };
    return await relayAnswer({ exchange, opened: answered, prepared, tools, hooks }, await next());
  } catch (error) {
    throw error instanceof UpstreamRefusal ? foreignRefusal(error) : error;
  }
}

const hostedTools = ['web_search', 'web_fetch', 'code_execution'] as const;

/** Tools of the vendor without a price are left out like those that it does not have. */
function offeredTraits(
  { tools }: Prompt,
  { traits }: Target,
  { name: protocol }: WireProtocol,
  isPriced: IsPriced,
): Traits {
  if (!tools.some(({ kind }) => kind === 'hosted')) return traits;
  const offered = traits.hosted_tools ?? (protocol === 'chat' ? [] : hostedTools);
  const costsTokens = (name: string) => protocol === 'gemini' && name !== 'web_search';
  return { ...traits, hosted_tools: offered.filter((name) => costsTokens(name) || isPriced(name)) };
}

/**
 * The request encoded for the upstream, the parameters that were dropped, whether it is large, and the digest of its conversation
 * where the answer may have calls.
 */
export async function encodeRequest(
  attempt: Attempt,
): Promise<{ encoded: EncodedRequest; dropped: readonly string[]; large: boolean; precedent: string | undefined }> {
  const { exchange, opened, upstream, target, tools } = attempt;
  const codec = decoding(opened);
  const account = accountOf(exchange);
  const large = isLarge(exchange, opened);
  const droppedParameters = new DroppedParameters(codec.spelling);
  const decoded = decodePrompt(exchange, opened, tools, droppedParameters);
  if (opened.hasLeftOut === true) droppedParameters.drop('file');
  if (large) await pause(exchange);
  const { ofPrompts } = tools.added;
  const asIs = ofPrompts.length === 0 || !readsPrompt(ofPrompts, exchange);
  const read = opened.transformed ?? (asIs ? decoded : await transformed(decoded, exchange, opened, tools));
  requireAnswerable(read.turns, codec.conversation);
  if (hasStrayResult(read.turns)) droppedParameters.drop('strayResults');
  const mine = withVendorIds(read.turns, () => callIdMarks(exchange, target, tools));
  const named = mine.turns === read.turns ? read : { ...read, turns: mine.turns };
  const keyed = withSessionKeyIn(named, attempt);
  const requested = opened.compaction === undefined ? keyed : compactionPrompt(keyed);
  const digest = new ConversationDigest(requested.turns);
  const whole = { ...requested, turns: tools.signatureCache.recall(account, makerOf(target), requested.turns, digest) };
  const mayCall = opened.compaction === undefined && opened.call.billable && requested.tools.length > 0;
  const precedent = mayCall ? digest.end() : undefined;
  if (whole.turns.some(({ parts }) => dropsReasoning(parts, target))) droppedParameters.drop('reasoningHistory');
  const prompt = await withBytes(attempt, whole, droppedParameters);
  if (large) await pause(exchange);
  const isPriced = pricedTools(exchange, tools.clock);
  const encoded = upstream.codec.encodeRequest(prompt, {
    target,
    traits: offeredTraits(prompt, target, upstream, isPriced),
    maker: makerOf(target),
    dropped: droppedParameters,
    ownCallIds: mine.own,
    stream: streamsUpstream(opened.call.stream, target),
    maxOutputTokens: exchange.find(model)?.maxOutputTokens,
  });
  if (large) await pause(exchange);
  tools.ids.refuseIn(encoded.body, opened, target);
  if (opened.call.billable) refuseUnpriced(upstream.name, encoded.body, isPriced);
  // Media that were fetched may be large too.
  return { encoded, dropped: droppedParameters.dropped, large: large || prompt !== whole, precedent };
}

/** A client's own key stays. */
function withSessionKeyIn(prompt: Prompt, attempt: Attempt): Prompt {
  const key = prompt.cacheKey === undefined ? sessionKeyOf(attempt) : undefined;
  return key === undefined ? prompt : { ...prompt, cacheKey: key };
}

/** Media given by URL become bytes, if the model takes such media. Throws invalid_request with the URL. */
function withBytes(
  { exchange, upstream, target, tools }: Attempt,
  prompt: Prompt,
  dropped: Pick<DroppedParameters, 'drop'>,
): Promise<Prompt> {
  const { media } = tools.config;
  if (!media.fetch) return Promise.resolve(prompt);
  const { needsBytes } = upstream.codec;
  const { inputs } = target.traits;
  // A document may turn out to be plain text, which every model takes.
  const kinds =
    inputs === undefined ? needsBytes : needsBytes.filter((kind) => kind === 'document' || inputs.includes(kind));
  const { allow_private: allowPrivate, max_bytes: maxBytes, timeout: timeoutMs, per_request: maxFiles } = media;
  const maxTotalBytes = Math.max(maxBytes, defaultFetchOptions.maxTotalBytes);
  const limits = { ...defaultFetchOptions, allowPrivate, maxBytes, maxTotalBytes, timeoutMs, maxFiles };
  const onMissing = ({ kind }: MediaPart) => dropped.drop(kind);
  return fetchMedia(prompt, kinds, { ...limits, onMissing }, exchange.signal);
}

function decodePrompt(exchange: Exchange, opened: Opened, tools: Tools, droppedParameters: DroppedParameters): Prompt {
  const codec = decoding(opened);
  const account = accountOf(exchange);
  const bounds = boundsOf(exchange, opened, tools.config);
  bounds?.json(opened.json);
  const prompt = codec.decodeRequest(opened.json, {
    dropped: droppedParameters,
    open: (text) => tools.sealer.open(text, account),
    onForeignReasoning: () => droppedParameters.drop('reasoningHistory'),
    keptItems: opened.keptItems,
  });
  bounds?.prompt(prompt, codec.conversation);
  return prompt;
}

/** The prompt after the transforms that other plugins add; the same object where none changes it. */
async function transformed(read: Prompt, exchange: Exchange, { call }: Opened, tools: Tools): Promise<Prompt> {
  let prompt = read;
  if (!call.billable) return prompt;
  for (const transform of tools.added.ofPrompts)
    if (readsPrompt([transform], exchange)) prompt = (await transform.request?.(prompt, exchange)) ?? prompt;
  return prompt;
}

/** What the transforms make of a request that would be relayed; undefined: they change nothing, and its bytes can stay. */
export async function changedPrompt({ exchange, opened, tools }: Attempt): Promise<Prompt | undefined> {
  const read = decodePrompt(exchange, opened, tools, new DroppedParameters(decoding(opened).spelling));
  if (isLarge(exchange, opened)) await pause(exchange);
  const prompt = await transformed(read, exchange, opened, tools);
  return prompt === read ? undefined : prompt;
}

/**
 * Whether a turn holds reasoning of another maker, which this target could not verify. Some targets accept its text;
 * beside a part that the target itself signed, unsigned text belongs to that signature.
 */
function dropsReasoning(parts: readonly Part[], target: Target): boolean {
  if (target.traits.reasoning_replay === true) return false;
  const maker = makerOf(target);
  if (parts.some((part) => 'opaqueState' in part && part.opaqueState?.maker === maker)) return false;
  return parts.some((part) => part.kind === 'reasoning');
}

/** The codec that decodes the request; by default the one of the client's protocol. */
export function decoding({ protocol, decodeWith }: Opened): ClientCodec {
  return (decodeWith ?? protocol).codec;
}

function translationOf(
  { exchange, opened, upstream, target, tools }: Attempt,
  { responseMapping, precedent }: EncodedRequest & { readonly precedent: string | undefined },
): ResponseTranslation {
  const account = accountOf(exchange);
  const maker = makerOf(target);
  const { reshape } = opened;
  const transforms = opened.call.billable ? answerTransforms(exchange, tools.added.ofAnswers) : undefined;
  const isPlain = opened.protocol.codec.plainCallIds === true || upstream.codec.plainCallIds === true;
  return new ResponseTranslation({
    client: replyCodec(exchange, opened, tools),
    upstream: upstream.codec,
    way: responseMapping,
    context: {
      exchangeId: exchange.id,
      call: opened.call,
      request: clientRequest(opened, transforms),
      query: exchange.request.query,
      createdAt: Math.floor(exchange.receivedAt / 1000),
      now: () => Math.floor(tools.clock.now() / 1000),
      seal: (value) => tools.sealer.seal({ maker, value }, account),
      shapeOf: shapeFor(exchange, tools),
      onResponse: tools.responseRecorder.recordTranslated(exchange, opened),
    },
    clientStreams: opened.call.stream,
    streamType: reshape?.streamType ?? 'text/event-stream',
    idleFrame: reshape?.idleFrame ?? opened.protocol.idleFrame?.() ?? keepAliveFrame,
    transforms,
    callId: (id) => clientCallId(id, isPlain, () => callIdMarks(exchange, target, tools)[0]),
    collector: precedent === undefined ? undefined : tools.signatureCache.collector(account, maker, precedent),
  });
}

/** What an answer may depend on of its request. The rest may be large, and would be kept as long as the answer takes. */
function withoutConversation(request: JsonObject, { conversation }: ClientCodec): JsonObject {
  return { ...request, [conversation]: undefined };
}

/** What an answer repeats or depends on of its request, as the client has written it. */
export function clientRequest(
  { clientJson, json, protocol }: Opened,
  transforms: AnswerTransforms | undefined,
): JsonObject {
  const request = withoutConversation(clientJson ?? json, protocol.codec);
  const repeats = transforms?.repeats;
  return repeats === undefined ? request : withRepeated(request, protocol.repeats ?? [], repeats);
}

/** The codec of the answer: the client's protocol, unless the client asked for a summary. */
function replyCodec(exchange: Exchange, { compaction, protocol, json }: Opened, { sealer }: Tools): ReplyCodec {
  if (compaction === undefined || protocol.compaction === undefined) return protocol.codec;
  const account = accountOf(exchange);
  const { maker, codec } = protocol.compaction;
  const seal = (value: string) => sealer.seal({ maker, value }, account);
  return codec(compaction, json, seal, (error) => exchange.fail(error));
}
