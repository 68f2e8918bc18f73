/** Opens requests of this protocol: relayed unchanged, or with their references replaced by the content. Pure. */

import type { JsonObject } from '../../../../core/json/json.ts';
import { applyEdits, type Changes, editsFor, scanObject } from '../../../../core/json/splice.ts';
import type { Call } from '../../../common/domain/calls.ts';
import { editBody } from '../../../common/kit/body-edits.ts';
import type { BuiltOn, Opened, Protocol, RequestBody } from '../../../common/wire/protocols.ts';
import { keptStateTokens } from '../../metering/estimate.ts';
import { relayedChoice } from '../../request/validated-choice.ts';
import {
  endsWithTrigger,
  expandedInput,
  foreignItems,
  inputItems,
  type References,
  referencesIn,
  withoutTriggers,
} from './decode/input-items.ts';

/** Differences between the addresses of this protocol. */
export interface Address {
  readonly protocol: () => Protocol;
  /** Path after the upstream's base URL. */
  readonly path: string;
  preflight(body: RequestBody): Call;
  /** `item`: when the input ends with a compaction order. */
  readonly compaction?: 'item' | 'answer';
}

/** Throws GatewayErrors that name the field. */
export function openRequest(body: RequestBody, address: Address): Opened {
  const { json } = body;
  const call = address.preflight(body);
  const references = referencesIn(json);
  return {
    protocol: address.protocol(),
    call,
    prepare: (target, members) => ({
      path: address.path,
      ...editBody(body, target, { members: relayedChoice(json, members) }),
    }),
    json,
    ...compactionOf(json, address),
    ...(references === undefined ? {} : { builtOn: builtOn(body, address, references) }),
  };
}

function compactionOf(
  json: JsonObject,
  { compaction }: Address,
): Pick<Opened, 'compaction'> & Partial<Pick<Opened, 'json' | 'clientJson'>> {
  if (compaction === 'answer') return { compaction };
  return compaction === 'item' && endsWithTrigger(json)
    ? { compaction, json: withoutTriggers(json), clientJson: json }
    : {};
}

function builtOn(body: RequestBody, address: Address, references: References): BuiltOn {
  return {
    ...references,
    expanded(earlier, items, conversation) {
      const input = expandedInput(body.json, earlier, items);
      const isConversation = conversation !== undefined;
      const whole = rewritten(body, input, isConversation);
      let foreign: RequestBody | undefined;
      return {
        protocol: address.protocol(),
        call: address.preflight(whole),
        prepare(target, members) {
          foreign ??= rewritten(body, foreignItems(input), isConversation);
          return { path: address.path, ...editBody(foreign, target, { members: relayedChoice(body.json, members) }) };
        },
        json: whole.json,
        ...compactionOf(whole.json, address),
        clientJson: body.json,
        keptItems: input.length - inputItems(body.json).length,
        ...(isConversation ? { conversation } : {}),
      };
    },
    continued(tokens) {
      const { builtOn: _found, ...opened } = openRequest(body, address);
      const alone = { ...body, json: { ...body.json, input: body.json['input'] ?? [], previous_response_id: null } };
      const inputTokens = address.preflight(alone).inputTokens + (tokens ?? keptStateTokens);
      return { ...opened, call: { ...opened.call, inputTokens } };
    },
  };
}

/** The body with this input and without what it stands for; its other bytes stay. `isConversation`: the gateway keeps it. */
function rewritten(
  { bytes, json, scan }: RequestBody,
  input: readonly unknown[],
  isConversation: boolean,
): RequestBody {
  const text = JSON.stringify(input);
  const changes: Changes = {
    remove: new Set(['previous_response_id', ...(isConversation ? ['conversation'] : [])]),
    ...('input' in json ? { replace: { input: text } } : { insert: { input: text } }),
  };
  const edited = applyEdits(bytes, editsFor(scan, changes));
  const { previous_response_id: _resolved, conversation, ...rest } = json;
  const vendors = isConversation || conversation === undefined ? {} : { conversation };
  return { bytes: edited, json: { ...rest, ...vendors, input }, scan: scanObject(edited) };
}
