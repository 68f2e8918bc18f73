/** `POST /v1/moderations`: relayed; the model may be left out. */
import { isObject } from '../../core/json/json.ts';
import { invalid } from '../../core/json/request-body.ts';
import { envelopeAnswer } from '../common/kit/error-envelope.ts';
import { checkLength, isAbsent, modelOf, readJson, relayedBody } from './checks.ts';
import type { EndpointDescription } from './description.ts';
import { openaiUsage } from './embeddings/vectors.ts';
import { heldTokens } from './estimate.ts';
import { parseAnswer } from './whole-json.ts';
import { bearer, wire } from './wires.ts';

export const moderations: EndpointDescription = {
  path: '/v1/moderations',
  operation: 'moderations',
  kind: 'moderation',
  summary: 'Sorts texts and images by the harm that they may do.',
  request: 'json',
  model: 'body',
  answers: ['application/json'],
  open({ request }, { inputs, defaultModels }) {
    const body = readJson(request.body);
    const { json } = body;
    const isNamed = !isAbsent(json['model']);
    const model = isNamed ? undefined : defaultModels.moderations;
    checkInput(json['input'], inputs);
    return {
      call: {
        protocol: wire.openaiModerations,
        model: model ?? modelOf(json),
        stream: false,
        billable: true,
        inputTokens: heldTokens(body.bytes.length),
        maxOutputTokens: 0,
        choices: 1,
        kind: 'moderation',
        convertsTo: [],
      },
      prepare: (target) => ({
        wire: bearer,
        path: '/moderations',
        ...relayedBody(body, target, isNamed ? {} : { changes: named(json, target.model) }),
        converted: false,
        answer: {
          form: 'whole',
          async read(bytes) {
            const answer = await parseAnswer(bytes);
            const { id } = answer;
            return { usage: openaiUsage(answer), upstreamId: typeof id === 'string' ? id : undefined };
          },
        },
      }),
    };
  },
  renderError: envelopeAnswer,
};

/** A null instead of a name is replaced. */
function named(json: object, model: string) {
  const text = JSON.stringify(model);
  return Object.hasOwn(json, 'model') ? { replace: { model: text } } : { insert: { model: text } };
}

function checkInput(input: unknown, most: number): void {
  if (isAbsent(input)) throw invalid('The field "input" is missing.', 'input');
  if (typeof input === 'string') return;
  if (!Array.isArray(input)) throw invalid('The field "input" must be a string or a list.', 'input');
  checkLength(input, 'input', most);
  for (const [index, item] of input.entries())
    if (typeof item !== 'string' && !isObject(item))
      throw invalid(`The field "input[${index}]" must be a string or an object.`, `input[${index}]`);
}
