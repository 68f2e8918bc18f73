/** Opens requests of this protocol: relayed as they came, or with what they refer to written out. Pure. */

import { editBody } from '../../../../core/body-edits.ts';
import { applyEdits, type Changes, editsFor, scanObject } from '../../../../core/splice.ts';
import type { Call } from '../../../../core/vocabulary.ts';
import { keptStateTokens } from '../../estimate.ts';
import type { JsonObject } from '../../json.ts';
import type { BuiltOn, Opened, Protocol, RequestBody } from '../../protocol.ts';
import {
  endsWithTrigger,
  expandedInput,
  foreignItems,
  type References,
  referencesIn,
  withoutTriggers,
} from './input-items.ts';

/** What tells one address of this protocol from another. */
export interface Address {
  readonly protocol: () => Protocol;
  /** Behind the upstream's base URL. */
  readonly path: string;
  peek(body: RequestBody): Call;
  /** `item`: where the input ends with the order to. */
  readonly compaction?: 'item' | 'answer';
}

/** Throws GatewayErrors that name the field. */
export function openRequest(body: RequestBody, address: Address): Opened {
  const { json } = body;
  const call = address.peek(body);
  const references = referencesIn(json);
  return {
    protocol: address.protocol(),
    call,
    prepare: (target) => ({ path: address.path, ...editBody(body, target) }),
    json,
    ...compactionOf(json, address),
    ...(references === undefined ? {} : { builtOn: builtOn(body, address, references) }),
  };
}

function compactionOf(
  json: JsonObject,
  { compaction }: Address,
): Pick<Opened, 'compaction'> & Partial<Pick<Opened, 'json' | 'asked'>> {
  if (compaction === 'answer') return { compaction };
  return compaction === 'item' && endsWithTrigger(json) ? { compaction, json: withoutTriggers(json), asked: json } : {};
}

function builtOn(body: RequestBody, address: Address, references: References): BuiltOn {
  return {
    ...references,
    expanded(earlier, items) {
      const input = expandedInput(body.json, earlier, items);
      const whole = rewritten(body, input);
      let foreign: RequestBody | undefined;
      return {
        protocol: address.protocol(),
        call: address.peek(whole),
        prepare(target) {
          foreign ??= rewritten(body, foreignItems(input));
          return { path: address.path, ...editBody(foreign, target) };
        },
        json: whole.json,
        ...compactionOf(whole.json, address),
        asked: body.json,
      };
    },
    continued(tokens) {
      const { builtOn: _found, ...opened } = openRequest(body, address);
      const alone = { ...body, json: { ...body.json, input: body.json['input'] ?? [], previous_response_id: null } };
      const inputTokens = address.peek(alone).inputTokens + (tokens ?? keptStateTokens);
      return { ...opened, call: { ...opened.call, inputTokens } };
    },
  };
}

/** The body with this input and without the id of an earlier answer; its other bytes stay. */
function rewritten({ bytes, json, scan }: RequestBody, input: readonly unknown[]): RequestBody {
  const text = JSON.stringify(input);
  const changes: Changes = {
    remove: new Set(['previous_response_id']),
    ...('input' in json ? { replace: { input: text } } : { insert: { input: text } }),
  };
  const edited = applyEdits(bytes, editsFor(scan, changes));
  const { previous_response_id: _resolved, ...rest } = json;
  return { bytes: edited, json: { ...rest, input }, scan: scanObject(edited) };
}
