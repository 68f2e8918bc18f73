/** Compares what either side saw with what was asked and played. */
import assert from 'node:assert/strict';
import { clients } from './clients/index.ts';
import type {
  Arrived,
  ArrivedPart,
  Client,
  ClientRequest,
  Play,
  PlayCall,
  RequestResult,
  Seen,
  VendorWords,
} from './scenario.ts';
import { type Between, forgets, type Scenario } from './scenarios.ts';
import { vendors } from './vendors/index.ts';

interface Sides {
  readonly client: Client;
  readonly vendor: VendorWords;
  readonly isSame: boolean;
}

function sidesOf({ client, vendor }: Between): Sides {
  return { client: clients[client], vendor: vendors[vendor], isSame: client === vendor };
}

// --------------------------------------------------------------------------------------------------------- the request

/** The request that reached the vendor asks what the client asked; `earlier` is the play that an echo stands for. */
export function assertArrived(
  arrived: Arrived,
  request: ClientRequest,
  earlier: Play | undefined,
  between: Between,
  scenario: Scenario,
): void {
  const sides = sidesOf(between);
  assert.equal(arrived.isStream, between.isStream, 'streamed as the client asked');
  assert.equal(arrived.system, request.system ?? '', 'the system text');
  assert.deepEqual(arrived.tools, request.tools ?? [], 'the declared tools');
  if (request.maxOutputTokens !== undefined)
    assert.equal(arrived.maxOutputTokens, request.maxOutputTokens, 'the bound');
  const canStop = !sides.client.lacks.has('stop') && !sides.vendor.lacks.has('stop');
  assert.deepEqual(arrived.stop, canStop ? request.stop : undefined, 'the stop sequences');
  assert.deepEqual(arrived.schema, request.schema, 'the schema of the answer');
  assert.equal(arrived.effort, request.reasons ? 'high' : undefined, 'the effort of reasoning');
  if (request.hints) assert.equal(arrived.temperature, 0.5, 'the temperature');
  assert.equal(
    arrived.choices ?? 1,
    request.twice && !sides.client.lacks.has('choices') ? 2 : 1,
    'the number of answers',
  );
  const parts = arrived.turns.flatMap(({ by, parts }) => parts.map((part) => ({ ...part, by })));
  assertTexts(parts, request, earlier, scenario.moreText ?? false);
  assertCalls(parts, request, earlier);
  assertMedia(parts, request, sides);
  // A relayed request keeps what the client has, no more.
  const isGone = sides.isSame && forgets(scenario, between);
  if (earlier !== undefined && !isGone) assertOpaqueState(parts, earlier, sides);
  assertResults(parts, request, sides);
}

type Placed = ArrivedPart & { readonly by: 'user' | 'assistant' };

function assertTexts(
  parts: readonly Placed[],
  request: ClientRequest,
  earlier: Play | undefined,
  moreText: boolean,
): void {
  const expected = request.turns.flatMap((turn): string[] => {
    if (turn.by === 'user') return turn.parts.flatMap((part) => (part.kind === 'text' ? [`user: ${part.text}`] : []));
    if (turn.by === 'assistant' && turn.text !== undefined) return [`assistant: ${turn.text}`];
    return turn.by === 'echo' && earlier?.text !== undefined ? [`assistant: ${earlier.text}`] : [];
  });
  const came = parts.flatMap((part) => (part.kind === 'text' ? [`${part.by}: ${part.text}`] : []));
  assert.deepEqual(moreText ? came.filter((one) => expected.includes(one)) : came, expected, 'the texts');
}

function assertCalls(parts: readonly Placed[], request: ClientRequest, earlier: Play | undefined): void {
  const expected = request.turns.flatMap((turn) =>
    turn.by === 'assistant' ? (turn.calls ?? []) : turn.by === 'echo' ? (earlier?.calls ?? []) : [],
  );
  const came = parts.flatMap((part) => (part.kind === 'call' ? [part] : []));
  assert.deepEqual(came.map(withoutId), expected.map(withoutId), 'the calls of the history');
}

function withoutId({ name, input }: { readonly name: string; readonly input: unknown }): unknown {
  return { name, input };
}

interface Media {
  readonly kind: 'image' | 'file' | 'audio';
  readonly mediaType: string;
  readonly base64: string;
  readonly name?: string;
}

function assertMedia(parts: readonly Placed[], request: ClientRequest, sides: Sides): void {
  const results = resultsOf(request).flatMap(({ image }): Media[] =>
    image === undefined ? [] : [{ kind: 'image', ...image }],
  );
  const requested = request.turns
    .flatMap((turn) => (turn.by === 'user' ? turn.parts : []))
    .filter((part) => part.kind !== 'text');
  const came = parts.flatMap((part): Media[] => {
    if (part.kind === 'image' || part.kind === 'file' || part.kind === 'audio') return [part];
    return part.kind === 'result' ? part.images.map((image) => ({ kind: 'image', ...image })) : [];
  });
  const bytes = ({ kind, mediaType, base64 }: Media) => [kind, mediaType, base64];
  const expected: Media[] = [...requested, ...results];
  assert.deepEqual(came.map(bytes), expected.map(bytes), 'the bytes of images and files');
  for (const [index, part] of came.entries()) {
    const { name } = part;
    const ending = !sides.isSame && sides.vendor.lacks.has('file-ending') ? /\.\w+$/ : '';
    if (name !== undefined) assert.equal(name, expected[index]!.name?.replace(ending, ''), 'the name of the file');
  }
}

function resultsOf(request: ClientRequest): readonly RequestResult[] {
  return request.turns.flatMap((turn) => (turn.by === 'tools' ? turn.results : []));
}

/** In the order of the calls, each with its own call's id. */
function assertResults(parts: readonly Placed[], request: ClientRequest, { client }: Sides): void {
  const names = new Map(
    parts.flatMap((part) => (part.kind === 'call' ? [[part.id, part.name]] : [])) as [string, string][],
  );
  const expected = resultsOf(request);
  const came = parts.flatMap((part) => (part.kind === 'result' ? [part] : []));
  assert.deepEqual(
    came.map(({ callId }) => names.get(callId)),
    expected.map(({ name }) => name),
    'the results belong to their calls',
  );
  for (const [index, { text, isError = false }] of expected.entries()) {
    assert.ok(came[index]!.text.includes(text), `the result "${text}"`);
    assert.equal(
      came[index]!.isError,
      isError && !client.lacks.has('result-error'),
      'the result says if it is an error',
    );
  }
}

/** The vendor gets back its own signature, on its own reasoning, before the call that it led to. */
function assertOpaqueState(parts: readonly Placed[], { reasoning, calls }: Play, { vendor }: Sides): void {
  if (reasoning === undefined) return;
  if (vendor.lacks.has('reasoning-history')) {
    const call = parts.find((part) => part.kind === 'call');
    assert.equal(call?.signature, reasoning.signature, 'the signature of the call');
    return;
  }
  const at = parts.findIndex((part) => part.kind === 'reasoning');
  const part = parts[at];
  assert.ok(part?.kind === 'reasoning', 'the reasoning comes back');
  assert.equal(part.text, reasoning.text, 'the text of the reasoning');
  if (!vendor.lacks.has('signature')) assert.equal(part.signature, reasoning.signature, 'the signature');
  if (calls !== undefined) assert.ok(at < parts.findIndex(({ kind }) => kind === 'call'), 'reasoning comes first');
}

// ---------------------------------------------------------------------------------------------------------- the answer

/** The client learns what the vendor has said. */
export function assertSeen(seen: Seen, play: Play, requested: ClientRequest, between: Between): void {
  const { client, vendor, isSame } = sidesOf(between);
  assert.equal(seen.error, undefined);
  if (play.refusal === undefined) {
    assert.equal(seen.text, play.text ?? '', 'the text');
    assert.equal(seen.refusal, '', 'no refusal');
  } else assert.equal(seen.text + seen.refusal, play.refusal, 'what was said instead of an answer');
  assert.equal(seen.second, play.second ?? '', 'the second answer');
  if (requested.reasons) assert.equal(seen.reasoning, play.reasoning?.text ?? '', 'the reasoning');
  assertReadCalls(seen.calls, play.calls ?? [], isSame);
  const doesReport = !vendor.lacks.has('stop-sequence') || vendor.lacks.has('stop');
  const meaning = play.meaning === 'stop-sequence' && !doesReport ? 'stop' : play.meaning;
  assert.ok(seen.meanings.includes(meaning), `the stop means ${meaning}, not ${seen.meanings.join(' or ')}`);
  if (meaning === 'stop-sequence' && !client.lacks.has('stop-sequence')) assert.equal(seen.sequence, play.sequence);
  assertUsage(seen, play, client, vendor);
  if (!isSame && !vendor.lacks.has('signature')) assertSealed(seen, play);
}

/** A vendor's signature is handed out under the gateway's seal, in the place that the client's protocol has for one. */
function assertSealed({ echo }: Seen, { reasoning }: Play): void {
  const text = JSON.stringify(echo);
  if (reasoning === undefined) return;
  // One protocol words it in base64.
  assert.match(text, /"(?:gw1\.|Z3cxL)/, 'the client gets a sealed signature');
  assert.ok(!text.includes(reasoning.signature), 'the client does not get the signature itself');
}

function assertReadCalls(came: readonly PlayCall[], played: readonly PlayCall[], isSame: boolean): void {
  assert.deepEqual(came.map(withoutId), played.map(withoutId), 'the calls');
  const ids = came.map(({ id }) => id);
  assert.equal(new Set(ids).size, ids.length, 'each call has an id of its own');
  assert.ok(
    ids.every((id) => id !== ''),
    'each call has an id',
  );
  if (isSame)
    assert.deepEqual(
      ids,
      played.map(({ id }) => id),
    );
}

function assertUsage(seen: Seen, { usage }: Play, client: Client, vendor: VendorWords): void {
  const isWritten = !vendor.lacks.has('cache-write');
  const expected = {
    ...usage,
    cacheWrite: isWritten ? usage.cacheWrite : 0,
  };
  const { cacheWrite, ...reported } = expected;
  assert.deepEqual(seen.usage, client.lacks.has('cache-write') ? reported : { ...reported, cacheWrite }, 'the usage');
}
