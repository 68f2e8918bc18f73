/** What a request names beside its own model: other models that the vendor would run, in fields where vendors take them. */
import type { JsonObject } from '../../core/json/json.ts';
import type { Chance } from './chance.ts';
import type { PricedModel } from './profile.ts';

export interface Beside {
  readonly protocol: string;
  readonly json: JsonObject;
  /** The field that names it. */
  readonly field: string;
  /** The model that the vendor would run; undefined: the request's own. */
  readonly other: PricedModel | undefined;
}

const shapes: readonly ((model: string) => Omit<Beside, 'other'>)[] = [
  (model) => ({ protocol: 'messages', json: { fallbacks: [{ model }] }, field: 'fallbacks[0].model' }),
  (model) => ({
    protocol: 'messages',
    json: { tools: [{ type: 'advisor_20260301', name: 'advisor', model }] },
    field: 'tools[0].model',
  }),
  (model) => ({ protocol: 'chat', json: { models: [model] }, field: 'models[0]' }),
  (model) => ({ protocol: 'chat', json: { options: { draft_model: model } }, field: 'options.draft_model' }),
  (model) => ({
    protocol: 'responses',
    json: { tools: [{ type: 'namespace', tools: [{ type: 'image_generation', model }] }] },
    field: 'tools[0].tools[0].model',
  }),
];

export function drawBeside(chance: Chance, own: PricedModel, others: readonly PricedModel[]): Beside {
  const named = chance.pick(others);
  return { ...chance.pick(shapes)(named.model.id), other: named === own ? undefined : named };
}
