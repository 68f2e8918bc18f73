/** Which requests may be answered again: the operator's rules, and what no rule allows. Pure. */
import type { Exchange } from '../../core/contract/contract.ts';
import { type JsonObject, listOf, objectOf } from '../../core/json/json.ts';
import { isLike } from '../../core/tools/wildcard.ts';
import { caller } from '../common/domain/accounts.ts';
import {
  answerPolicies,
  type Call,
  call,
  conversation,
  pinned,
  unrecorded,
  vendorBatch,
} from '../common/domain/calls.ts';
import { model } from '../common/domain/models.ts';
import type { Ratio } from '../common/domain/money.ts';
import { type Opened, opened } from '../common/wire/protocols.ts';
import type { WrittenRule } from './config.ts';

export interface Rule {
  readonly operations: ReadonlySet<string> | undefined;
  readonly models: readonly string[] | undefined;
  readonly without: ReadonlySet<string>;
  readonly keepMs: number;
  /** What a hit costs, as a share of what the call would have cost; from 0 to 1. */
  readonly share: Ratio;
}

export function ruleOf({ operations, models, without, keep, price }: WrittenRule): Rule {
  return {
    operations: operations && new Set(operations),
    models,
    without: new Set(without),
    keepMs: keep,
    share: price,
  };
}

/** The first rule for this request; `json`: its body. */
export function ruleFor(rules: readonly Rule[], exchange: Exchange, json: JsonObject): Rule | undefined {
  const { operation } = exchange.endpoint;
  const names = [exchange.get(call).model, exchange.find(model)?.id ?? ''];
  return rules.find(
    ({ operations, models, without }) =>
      (operations?.has(operation) ?? true) &&
      (models?.some((pattern) => names.some((one) => isLike(pattern, one))) ?? true) &&
      !(without.has('tools') && hasTools(json)) &&
      !(without.has('media') && (exchange.find(conversation)?.mediaKinds?.().size ?? 0) > 0),
  );
}

function hasTools(json: JsonObject): boolean {
  return listOf(json['tools']).length > 0 || listOf(json['functions']).length > 0;
}

/** Whether rules may be asked at all, without the body. */
export function mayRepeat(exchange: Exchange): boolean {
  if (!exchange.get(call).billable) return false;
  if (exchange.find(vendorBatch) !== undefined || exchange.find(unrecorded) === true) return false;
  if (exchange.find(pinned) !== undefined || exchange.find(caller)?.retention === 'none') return false;
  return hasPolicies(exchange, exchange.find(answerPolicies)?.digest());
}

/** Whether the policies of the call are those of this digest, and let its answer be given to others; true without any. */
export function hasPolicies(exchange: Exchange, digest: string | undefined): boolean {
  const policies = exchange.find(answerPolicies);
  return policies === undefined || (digest !== undefined && policies.digest() === digest);
}

/**
 * Whether this request has one answer as good as the next: nothing comes of it but the answer, it goes on with nothing that is kept
 * elsewhere, and several choices are asked for only where they are the same each time.
 */
export function isRepeatable(exchange: Exchange, json: JsonObject): boolean {
  const request = exchange.find(opened);
  if (json['store'] === true || json['background'] === true) return false;
  if (request !== undefined && (isKept(request, json) || goesOn(request))) return false;
  if (exchange.find(conversation)?.hasSideEffects?.() === true) return false;
  return exchange.get(call).choices === 1 || isSettled(json);
}

/** Answers of this protocol are kept unless the request says that they are not. */
function isKept({ protocol }: Opened, json: JsonObject): boolean {
  return protocol.inputItems !== undefined && json['store'] !== false;
}

function goesOn({ builtOn, conversation: kept, keptItems = 0, compaction, vendorIds, hasLeftOut }: Opened): boolean {
  return [builtOn, kept, compaction, vendorIds, hasLeftOut].some((one) => one !== undefined) || keptItems > 0;
}

/** A seed, or the temperature 0. */
function isSettled(json: JsonObject): boolean {
  const settings = [json, objectOf(json['generationConfig']), objectOf(json['generation_config'])];
  return settings.some((one) => typeof one?.['seed'] === 'number' || one?.['temperature'] === 0);
}

/** Services beyond the standard one were granted as requested: a hit is priced as the request says. */
export function isAsRequested(
  requested: Call,
  services: Call['services'],
  media: readonly string[] | undefined,
): boolean {
  if (requested.media === undefined && media !== undefined) return false;
  const kinds = Object.entries(requested.services ?? {});
  return kinds.every(([kind, granted]) => (services?.[kind] ?? granted) === granted);
}
