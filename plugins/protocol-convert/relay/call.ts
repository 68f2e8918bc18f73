/** A call to an upstream of the client's own protocol, or of a variant of it: byte for byte in both directions. */

import { type Exchange, type Next, upstreamRequest } from '../../../core/contract/contract.ts';
import type { Answer } from '../../../core/contract/message.ts';
import { UpstreamRefusal } from '../../../core/contract/upstream-failures.ts';
import { asBuffer, isObject, tryParseBytes } from '../../../core/json/json.ts';
import type { ReplyContext } from '../../common/canonical/codec.ts';
import type { Call } from '../../common/domain/calls.ts';
import type { Target } from '../../common/domain/upstreams.ts';
import type { MemberChanges } from '../../common/kit/body-edits.ts';
import { keepAliveFrame } from '../../common/kit/sse.ts';
import { buildUpstreamRequest } from '../../common/kit/upstream-request.ts';
import { asksForTools, refuseUnmetered, refuseUnpriced } from '../../common/wire/named.ts';
import type { Opened, Prepared, Reshape } from '../../common/wire/protocols.ts';
import type { UsageMeter } from '../../common/wire/usage-meter.ts';
import {
  type Attempt,
  accountOf,
  checkDropped,
  pricedTools,
  recordConversion,
  shapeFor,
  type Tools,
} from '../dependencies.ts';
import { sealPrefix } from '../encoding/sealed-text.ts';
import { withSessionKey } from '../request/session-key.ts';
import { type AnswerTransforms, answerTransforms } from '../transforms/chain.ts';
import { RelayedAnswer } from '../transforms/relayed-answer.ts';
import { clientRequest, makerOf } from '../translate/call.ts';
import { ResponseTranslation } from '../translate/response-mapping.ts';
import { foreignRefusal } from '../translate/upstream-error.ts';
import { inConversation, repeatedTexts, requestedModel } from './answer-edits.ts';
import { EditedAnswer } from './edited-answer.ts';
import type { RelayHooks } from './hooks.ts';
import { type RelayedCall, relayAnswer } from './relay.ts';
import { changedMembers, type SpokenProtocol } from './variants.ts';

/** Throws or rejects as `relayAnswer` does. `give`: called with the client's answer. */
export function relayCall(attempt: Attempt, next: Next, give: (answer: Answer) => Answer): Promise<Answer> {
  const { exchange, opened, upstream, target, tools } = attempt;
  const { protocol, call, conversation, vendorIds } = opened;
  if (vendorIds !== undefined) tools.ids.refuse(vendorIds.unknown, target);
  refuseUncharged(attempt);
  const { variant } = upstream;
  const changes = variant === undefined && target.upstream.sessionKey !== true ? undefined : changesOf(attempt);
  const relayedCall = withoutSeals(exchange, opened, opened.prepare(target, changes), tools);
  const queried = exchange.request.query.size === 0 ? relayedCall : withQuery(exchange, relayedCall);
  const prepared = variant === undefined ? queried : readdressed(relayedCall, variant, call, target);
  recordConversion(exchange, protocol.name, null, prepared.dropped, tools);
  if (prepared.dropped.length > 0) checkDropped(prepared.dropped, tools.config);
  exchange.set(upstreamRequest, buildUpstreamRequest(upstream, exchange.request, prepared, target, call.stream));
  const { ofAnswers } = tools.added;
  const changing = call.billable && ofAnswers.length > 0 ? answerTransforms(exchange, ofAnswers) : undefined;
  const transforms = changing === undefined ? undefined : changed(attempt, changing);
  const hooks = hooksOf(attempt, changing, transforms);
  const isNamed = call.billable && (tools.config.answer_model !== 'vendor' || conversation !== undefined);
  const inner = transforms ?? opened.reshape;
  const reshape = isNamed ? named(opened, inner, tools) : inner;
  const answered = reshape === undefined ? opened : { ...opened, reshape };
  const relaying: RelayedCall = { exchange, opened: answered, prepared, tools, hooks };
  if (variant !== undefined) return relayVariant(relaying, variant, next).then(give);
  return next().then((answer) => {
    const relayed = relayAnswer(relaying, answer);
    return relayed instanceof Promise ? relayed.then(give) : give(relayed);
  });
}

function hooksOf(
  attempt: Attempt,
  changing: AnswerTransforms | undefined,
  transforms: RelayedAnswer | undefined,
): RelayHooks {
  const { exchange, opened, target, tools } = attempt;
  const { protocol, call, conversation, compaction } = opened;
  // Clients of other protocols have no way to refer to an answer.
  const isRecorded = protocol.inputItems !== undefined || conversation !== undefined;
  const { ended, items } = isRecorded ? tools.responseRecorder.recordRelayed(exchange, opened, target) : unrecorded;
  return {
    ended:
      transforms === undefined ? ended : (meter: UsageMeter) => (transforms.isChanged ? undefined : ended?.(meter)),
    items,
    issued: tools.ids.recording(exchange, opened, target),
    otherForm: call.billable && compaction === undefined ? () => otherForm(attempt, changing) : undefined,
  };
}

/** Over the answer's conversion: the client is to read the name that it has asked for, or the conversation that it goes on with. */
function named(opened: Opened, reshape: Reshape | undefined, { config }: Tools): Reshape {
  const { protocol, call, conversation } = opened;
  const edits = [
    ...(config.answer_model === 'vendor' ? [] : [requestedModel(protocol, call.model)]),
    ...(conversation === undefined ? [] : [inConversation(conversation.id)]),
  ];
  return new EditedAnswer(protocol, edits, reshape);
}

/** Refuses other models and tools that the vendor would run uncharged. */
function refuseUncharged({ exchange, opened, target, tools }: Attempt): void {
  const { protocol, json, call } = opened;
  if (!call.billable) return;
  // Members that this provider does not get.
  const left = target.upstream.dropFields[target.protocol] ?? [];
  // The vendor reads such names as its own: the client's name for its model may be that of another one there.
  refuseUnmetered(protocol.name, json, { has: (one) => one === target.model }, left);
  if (asksForTools(protocol.name, json)) refuseUnpriced(protocol.name, json, pricedTools(exchange, tools.clock), left);
}

const unrecorded: Pick<RelayHooks, 'ended' | 'items'> = {};

function changed(attempt: Attempt, transforms: AnswerTransforms): RelayedAnswer {
  const { exchange, opened, tools } = attempt;
  const { protocol, reshape } = opened;
  const { repeats } = transforms;
  const isRepeated = repeats !== undefined && protocol.repeats !== undefined;
  return new RelayedAnswer({
    codec: protocol.codec,
    transforms,
    dialect: isRepeated ? new EditedAnswer(protocol, [repeatedTexts(protocol, repeats)], reshape) : reshape,
    streamEnd: protocol.streamEnd,
    changed: tools.responseRecorder.recordTranslated(exchange, opened),
    context: contextOf(attempt, transforms),
  });
}

/** Converts a whole answer to a request for a stream, or a stream to a request for a whole answer: it cannot pass as it is. */
function otherForm(attempt: Attempt, transforms: AnswerTransforms | undefined): ResponseTranslation {
  const { exchange, opened, tools } = attempt;
  const { protocol, call, reshape } = opened;
  const { codec } = protocol;
  return new ResponseTranslation({
    client: codec,
    upstream: codec,
    way: { names: new Map(), wrapped: new Set() },
    context: {
      ...contextOf(attempt, transforms),
      continues: true,
      onResponse: tools.responseRecorder.recordTranslated(exchange, opened),
    },
    clientStreams: call.stream,
    streamType: reshape?.streamType ?? 'text/event-stream',
    idleFrame: reshape?.idleFrame ?? protocol.idleFrame?.() ?? keepAliveFrame,
    callId: (id) => id,
    collector: undefined,
    transforms,
  });
}

/** Context for an encoder of the client's own protocol. */
function contextOf(
  { exchange, opened, target, tools }: Attempt,
  transforms: AnswerTransforms | undefined,
): Omit<ReplyContext, 'usage'> {
  const { call } = opened;
  const { codec } = opened.protocol;
  const [account, maker] = [accountOf(exchange), makerOf(target)];
  return {
    exchangeId: exchange.id,
    call,
    request: clientRequest(opened, transforms),
    query: exchange.request.query,
    createdAt: Math.floor(exchange.receivedAt / 1000),
    now: () => Math.floor(tools.clock.now() / 1000),
    seal: (value) => (codec.createContinuation === undefined ? tools.sealer.seal({ maker, value }, account) : value),
    shapeOf: shapeFor(exchange, tools),
  };
}

/** Error bodies that have to be read in a form of their own are not handed on byte for byte. */
async function relayVariant(relayedCall: RelayedCall, { answering }: Variant, next: Next): Promise<Answer> {
  const opened = { ...relayedCall.opened, protocol: answering };
  try {
    return await relayAnswer({ ...relayedCall, opened }, await next());
  } catch (error) {
    const isForeign = answering.readError !== undefined && error instanceof UpstreamRefusal;
    throw isForeign ? foreignRefusal(error) : error;
  }
}

type Variant = NonNullable<SpokenProtocol['variant']>;

/** What the request differs by beside its dialect; undefined: nothing. */
function changesOf(attempt: Attempt): MemberChanges | undefined {
  const { variant } = attempt.upstream;
  const own = variant === undefined ? undefined : changesFor(variant, attempt.exchange, attempt.opened, attempt.target);
  return attempt.target.upstream.sessionKey === true ? withSessionKey(attempt, own) : own;
}

function changesFor(variant: Variant, { request }: Exchange, { json }: Opened, { traits }: Target) {
  return changedMembers(variant, { json, headers: request.headers, traits });
}

function readdressed(prepared: Prepared, variant: Variant, { stream }: Call, { model }: Target): Prepared {
  return { ...prepared, path: variant.address(prepared.path, { model, stream }) };
}

/** Query members that belong to the gateway: the client's key, and the answer format, which the gateway chooses. */
const ownQuery = new Set(['key', 'access_token', 'oauth_token', 'api_key', 'api-key', 'alt', '$alt']);
/** They would remove usage or change the format of the answer, which the gateway meters and reads. */
const refusedQuery = new Set(['fields', '$fields', 'callback', '$callback']);

/** Forwards the client's query, except for members that belong to the gateway. */
function withQuery(exchange: Exchange, prepared: Prepared): Prepared {
  const passed = new URLSearchParams();
  const dropped: string[] = [];
  for (const [name, value] of exchange.request.query) {
    const known = name.toLowerCase();
    if (refusedQuery.has(known)) dropped.push(name);
    else if (!ownQuery.has(known)) passed.append(name, value);
  }
  if (passed.size === 0 && dropped.length === 0) return prepared;
  const mark = prepared.path.includes('?') ? '&' : '?';
  const path = passed.size === 0 ? prepared.path : `${prepared.path}${mark}${passed}`;
  return { ...prepared, path, dropped: [...prepared.dropped, ...new Set(dropped)] };
}

/**
 * Removes texts that the gateway sealed into earlier, translated answers: the vendor would refuse them. A body without
 * sealed texts stays as it is, byte for byte.
 */
function withoutSeals(exchange: Exchange, { protocol }: Opened, prepared: Prepared, { sealer }: Tools): Prepared {
  const { codec } = protocol;
  const bytes = asBuffer(prepared.body);
  const mark = codec.sealMark ?? sealPrefix;
  // The mark alone is found many times faster than with its quote, as a body may contain many quotes.
  if (!bytes.includes(mark) || !bytes.includes(`"${mark}`)) return prepared;
  const json = tryParseBytes(prepared.body);
  if (!isObject(json)) return prepared;
  const account = accountOf(exchange);
  const clean = codec.withoutSeals(json, (text) => sealer.open(text, account));
  return { ...prepared, body: Buffer.from(JSON.stringify(clean)) };
}
