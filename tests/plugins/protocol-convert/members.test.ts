/** No member of a request is lost in silence: each one changes what the upstream is asked, or the header, or the refusal. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../core/contract/errors.ts';
import { requestShape as chatShape } from '../../../plugins/protocol-convert/protocols/chat/shapes.ts';
import { requestShape as geminiShape } from '../../../plugins/protocol-convert/protocols/gemini/decode/request.ts';
import { requestShape as messagesShape } from '../../../plugins/protocol-convert/protocols/messages/shapes.ts';
import { requestShape as responsesShape } from '../../../plugins/protocol-convert/protocols/responses/shapes.ts';
import type { Shape, Variants } from '../../../plugins/protocol-convert/request/shapes.ts';
import { type Name, names, send } from './completeness/table.ts';
import { chat, gemini, messages, responses } from './members/samples.ts';

type Json = Record<string, unknown>;
const samples: Readonly<Record<Name, readonly Json[]>> = { chat, responses, messages, gemini };

type Path = readonly (string | number)[];

const shapes: Readonly<Record<Name, Shape>> = {
  chat: chatShape,
  responses: responsesShape,
  messages: messagesShape,
  gemini: geminiShape,
};

/** Every object of the request that a shape speaks of, with its shape. */
function* objectsIn(value: unknown, kind: Shape | Variants, path: Path): Generator<{ path: Path; shape: Shape }> {
  if (Array.isArray(value)) {
    for (const [index, element] of value.entries()) yield* objectsIn(element, kind, [...path, index]);
    return;
  }
  if (typeof value !== 'object' || value === null) return;
  const known = typeof kind === 'function' ? kind(value as Json) : kind;
  if (known === undefined) return;
  yield { path, shape: known };
  for (const [member, inner] of known.inside) yield* objectsIn((value as Json)[member], inner, [...path, member]);
}

function changed(request: Json, path: Path, change: (place: Json) => void): Json {
  const copy = structuredClone(request);
  change(path.reduce<unknown>((at, step) => (at as Json)[step as string], copy) as Json);
  return copy;
}

/** What can be seen of a request from outside: the upstream's body and the header, or the refusal. */
async function seen(from: Name, request: Json, to: Name): Promise<string> {
  try {
    const { text, dropped } = await send(from, request, to);
    return JSON.stringify([text, dropped]);
  } catch (error) {
    assert.ok(error instanceof GatewayError, `${from} to ${to}: ${String(error)}`);
    return `${error.kind} ${error.field} ${error.message}`;
  }
}

/** A vendor that takes bytes alone is not asked: the gateway fetches what stands at the address first. */
const fetches = (to: Name, request: Json) =>
  (to === 'gemini' || to === 'chat') && JSON.stringify(request).includes('http://127.0.0.1:1');

/** Losses that stand in many places have one name: that of the member, of the object around it, or of its kind. */
const groups = new Map([
  ['annotations', 'web_search_call'],
  ['action', 'web_search_call'],
  ['cache_control', 'prompt_cache_breakpoint'],
  ['data', 'thinking'],
  ['text', 'thought'],
  ['thoughtSignature', 'thought'],
  ['server_tool_use', 'web_search_tool_result'],
]);
function isNamed(whole: string, place: Json, path: Path, member: string): boolean {
  if (!whole.startsWith('[')) return false;
  const [, dropped] = JSON.parse(whole) as [string, string[]];
  const around = path.findLast((step) => typeof step === 'string');
  const { type } = place;
  const last = (name: string) =>
    name
      .split('.')
      .at(-1)!
      .replace(/\[\d*\]$/, '');
  return dropped.some((name) =>
    [member, around, groups.get(member), groups.get(around as string), type, groups.get(type as string)].includes(
      last(name),
    ),
  );
}

/** What says nothing beside the other members of the sample: the kind of what is named, or what the target does anyway. */
const implied: Readonly<Record<Name, readonly string[]>> = {
  chat: [
    // Known by what stands beside it, or found in the bytes.
    ...['tool_choice.type', 'source.media_type', 'thinking.type', 'reasoning.enabled'],
    // Schemas are followed strictly in any case where they can be.
    'json_schema.strict',
  ],
  responses: [
    ...['format.type', 'format.strict', 'reasoning.summary'],
    // A label that one protocol requires and the others lack.
    'format.name',
    // Tools that wait to be found are shown at once.
    '0.defer_loading',
  ],
  // Reasoning is hidden in the answer.
  messages: ['source.media_type', 'thinking.display'],
  gemini: [
    ...['0.role', '1.role', '2.role', 'inlineData.mimeType', 'fileData.mimeType'],
    // Either of them tells which call is answered.
    ...['functionResponse.id', 'functionResponse.name'],
    'thinkingConfig.includeThoughts',
  ],
};
const isImplied = (from: Name, place: Json, path: Path, member: string) =>
  implied[from].includes(`${String(path.at(-1) ?? '')}.${member}`) ||
  // Over with the next message; and responses models show no reasoning unless they are asked to.
  (place['clear_at'] !== undefined && member === 'content') ||
  (member === 'include_reasoning' && place[member] === false);

for (const from of names) {
  const shape = shapes[from];
  const requests = samples[from];
  const others = names.filter((to) => to !== from);

  test(`${from}: an unknown member is named, wherever it stands`, async () => {
    let places = 0;
    for (const request of requests)
      for (const { path, shape: at } of objectsIn(request, shape, [])) {
        if (path.length === 0 || at.isOpen) continue;
        places++;
        for (const to of others.filter((name) => !fetches(name, request)))
          for (const value of [1, 'text', true, { a: 1 }, ['a']]) {
            const odd = changed(request, path, (place) => {
              place['unheard_of'] = value;
            });
            const reported = await seen(from, odd, to);
            assert.ok(reported.includes('unheard_of'), `${from} to ${to}: ${path.join('.')}: ${reported}`);
          }
      }
    assert.ok(places > 15, `${places} places`);
  });

  for (const to of others)
    test(`${from} to ${to}: each member changes the request, or is named as dropped`, async () => {
      const silent: string[] = [];
      for (const request of requests) {
        const whole = await seen(from, request, to);
        for (const { path, shape: at } of objectsIn(request, shape, [])) {
          const place = path.reduce<unknown>((value, step) => (value as Json)[step as string], request) as Json;
          for (const member of Object.keys(place)) {
            if (at.idle.has(member)) continue;
            const less = changed(request, path, (object) => {
              delete object[member];
            });
            if (fetches(to, request) || isImplied(from, place, path, member)) continue;
            if ((await seen(from, less, to)) === whole && !isNamed(whole, place, path, member))
              silent.push([...path, member].join('.'));
          }
        }
      }
      assert.deepEqual(silent, []);
    });
}
