/** A call for an upstream of another protocol: its request through the common tongue there, its answer back. */
import { type Answer, type Exchange, type Next, upstreamRequest } from '../../core/contract.ts';
import { UpstreamRefusal } from '../../core/errors.ts';
import { keepAliveFrame } from '../../core/sse.ts';
import { model, type Target } from '../../core/vocabulary.ts';
import type { Codec, EncodedRequest } from './codec.ts';
import { foreignRefusal } from './foreign-error.ts';
import { Losses } from './losses.ts';
import type { Opened, Prepared, Protocol } from './protocol.ts';
import { protocolNamed } from './protocols/index.ts';
import { compactionMaker } from './protocols/responses/read-input.ts';
import { relayAnswer } from './relay.ts';
import { compactionPrompt } from './state/compaction.ts';
import { compactionAnswerWords, compactionItemWords, type ReplyWords } from './state/compaction-reply.ts';
import { mustEmulate } from './state/emulation.ts';
import { accountOf, checkLosses, noteWay, shapeFor, type Tools, withBytes } from './tools.ts';
import { Translation } from './translation.ts';
import { wordUpstreamRequest } from './upstream-request.ts';
import { hasStrayResult } from './wording/history.ts';

/** Names who made a keepsake, so that nobody else is given it. */
export function makerOf({ protocol, provider, model: name }: Target): string {
  return `${protocol}/${provider}/${name}`;
}

/** Where protocols differ, or the ways to answer (streamed, whole), or the upstream lacks what its protocol has elsewhere. */
export function mustTranslate(opened: Opened, target: Target): boolean {
  const { protocol, call } = opened;
  if (target.protocol !== protocol.name || mustEmulate(opened, target)) return true;
  return call.billable && streamsUpstream(call.stream, target) !== call.stream;
}

function streamsUpstream(wanted: boolean, { traits }: Target): boolean {
  return wanted ? traits.streams !== 'never' : traits.streams === 'only';
}

/** The client's answer. Throws as `relayAnswer` does, and GatewayErrors for what cannot be asked of this target. */
export async function translateCall(
  exchange: Exchange,
  opened: Opened,
  upstream: Protocol,
  target: Target,
  tools: Tools,
  next: Next,
): Promise<Answer> {
  const stream = streamsUpstream(opened.call.stream, target);
  const { encoded, dropped: lost } = await wordRequest(exchange, opened, upstream, target, tools);
  noteWay(exchange, `translated from ${opened.protocol.name} to ${upstream.name}`, lost, tools);
  checkLosses(lost, tools.config);
  const prepared: Prepared = { path: encoded.path, body: Buffer.from(JSON.stringify(encoded.body)), dropped: lost };
  // No header of the client's means anything in another protocol.
  const bare = { ...exchange.request, headers: {} };
  exchange.set(upstreamRequest, wordUpstreamRequest(upstream, bare, prepared, target, stream));
  const translation = translationOf(exchange, opened, upstream, target, encoded, tools);
  const asked: Opened = {
    ...opened,
    protocol: upstream,
    call: { ...opened.call, protocol: upstream.name, stream },
    reshape: translation,
  };
  try {
    const answer = await relayAnswer(exchange, asked, prepared, await next(), tools);
    return stream && !opened.call.stream ? await gathered(answer, translation) : answer;
  } catch (error) {
    throw error instanceof UpstreamRefusal ? foreignRefusal(error) : error;
  }
}

/** The request in the upstream's words, and what it lost on the way. */
export async function wordRequest(
  exchange: Exchange,
  opened: Opened,
  upstream: Protocol,
  target: Target,
  tools: Tools,
): Promise<{ encoded: EncodedRequest; dropped: readonly string[] }> {
  const codec = decoding(opened);
  const account = accountOf(exchange);
  const losses = new Losses(codec.spelling);
  const read = codec.decodeRequest(opened.json, { losses, open: (text) => tools.sealer.open(text, account) });
  if (hasStrayResult(read.turns)) losses.drop('strayResults');
  const asked = opened.compaction === undefined ? read : compactionPrompt(read);
  const whole = { ...asked, turns: tools.memory.recall(account, asked.turns) };
  const prompt = await withBytes(whole, upstream.codec.needsBytes, tools.config, exchange.signal);
  const encoded = upstream.codec.encodeRequest(prompt, {
    target,
    traits: target.traits,
    maker: makerOf(target),
    losses,
    stream: streamsUpstream(opened.call.stream, target),
    maxOutputTokens: exchange.find(model)?.maxOutputTokens,
  });
  return { encoded, dropped: losses.dropped };
}

/** The codec that reads the request; as a rule that of the client's protocol. */
export function decoding({ protocol, decodeWith }: Opened): Codec {
  return (decodeWith === undefined ? undefined : protocolNamed(decodeWith)?.codec) ?? protocol.codec;
}

function translationOf(
  exchange: Exchange,
  opened: Opened,
  upstream: Protocol,
  target: Target,
  { way }: EncodedRequest,
  tools: Tools,
): Translation {
  const account = accountOf(exchange);
  const maker = makerOf(target);
  const { reshape } = opened;
  return new Translation({
    client: replyWords(exchange, opened, tools),
    upstream: upstream.codec,
    way,
    context: {
      exchangeId: exchange.id,
      call: opened.call,
      request: opened.asked ?? opened.json,
      query: exchange.request.query,
      createdAt: Math.floor(exchange.receivedAt / 1000),
      seal: (value) => tools.sealer.seal({ maker, value }, account),
      shapeOf: shapeFor(exchange, tools),
      onResponse: tools.keeper.keeping(exchange, opened),
    },
    clientStreams: opened.call.stream,
    streamType: reshape?.streamType ?? 'text/event-stream',
    idleFrame: reshape === undefined ? keepAliveFrame : reshape.idleFrame,
    collector: opened.compaction === undefined ? tools.memory.collector(account, maker) : undefined,
  });
}

/** How the answer is worded: as the client's protocol does, unless it asked for a summary in its place. */
function replyWords(exchange: Exchange, { compaction, protocol, json }: Opened, { sealer }: Tools): ReplyWords {
  if (compaction === undefined) return protocol.codec;
  const account = accountOf(exchange);
  const seal = (value: string) => sealer.seal({ maker: compactionMaker, value }, account);
  return compaction === 'answer'
    ? compactionAnswerWords(json, seal)
    : compactionItemWords(seal, (error) => exchange.fail(error));
}

/** An upstream that only streams, for a client that wants one body: read to its end, then worded. */
async function gathered(answer: Answer, translation: Translation): Promise<Answer> {
  for await (const _ of answer.body as AsyncIterable<Uint8Array>);
  const { 'x-gateway-dropped': lost } = answer.headers;
  return {
    status: answer.status,
    headers: { 'content-type': 'application/json', ...(lost === undefined ? {} : { 'x-gateway-dropped': lost }) },
    body: translation.gathered(),
  };
}
