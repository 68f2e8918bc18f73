/** `POST /v1/decisions` in OpenAI's form and `POST /v1/systemone` in TypeSafe's: relayed, or converted into each other. */
import type { RequestBody } from '../../../core/json/request-body.ts';
import type { Target } from '../../common/domain/upstreams.ts';
import { envelopeAnswer } from '../../common/kit/error-envelope.ts';
import { modelOf, readJson, relayedBody } from '../checks.ts';
import type { EndpointDescription, Prepared } from '../description.ts';
import { detailedError } from '../errors.ts';
import { parseAnswer } from '../whole-json.ts';
import { bearer } from '../wires.ts';
import { decisionUsage } from './checks.ts';
import { decisionsForm } from './decisions.ts';
import type { Form } from './form.ts';
import { systemoneForm } from './systemone.ts';

function endpoint(own: Form, other: Form, renderError: EndpointDescription['renderError']): EndpointDescription {
  return {
    path: `/v1${own.path}`,
    operation: 'decisions',
    kind: 'decision',
    summary: 'Answers typed questions about an input with probabilities.',
    request: 'json',
    model: 'body',
    answers: ['application/json'],
    open({ request }, limits) {
      const body = readJson(request.body);
      const model = modelOf(body.json);
      const { questions, tokens } = own.measure(body, limits);
      return {
        call: {
          protocol: own.protocol,
          model,
          stream: false,
          billable: true,
          inputTokens: tokens,
          maxOutputTokens: 0,
          choices: questions,
          kind: 'decision',
          convertsTo: [other.protocol],
        },
        prepare: (target) =>
          target.protocol === own.protocol
            ? relayed(body, own, target)
            : converted(body, model, { own, other }, target),
      };
    },
    renderError,
  };
}

export const decisionEndpoints: readonly EndpointDescription[] = [
  endpoint(decisionsForm, systemoneForm, envelopeAnswer),
  endpoint(systemoneForm, decisionsForm, detailedError),
];

function relayed(body: RequestBody, { path }: Form, target: Target): Prepared {
  return {
    wire: bearer,
    path,
    ...relayedBody(body, target),
    converted: false,
    answer: { form: 'whole', read: async (bytes) => ({ usage: decisionUsage(await parseAnswer(bytes)) }) },
  };
}

interface Forms {
  readonly own: Form;
  readonly other: Form;
}

function converted({ json }: RequestBody, model: string, { own, other }: Forms, target: Target): Prepared {
  const read = own.read(json);
  const { questions } = read;
  return {
    wire: bearer,
    path: other.path,
    body: Buffer.from(JSON.stringify(other.encode(read, target.model))),
    contentType: 'application/json',
    dropped: read.others,
    converted: true,
    answer: {
      form: 'whole',
      async read(bytes) {
        const answer = await parseAnswer(bytes);
        const usage = decisionUsage(answer);
        const answers = other.readAnswers(answer, questions);
        const body = JSON.stringify(own.encodeAnswers(answers, questions, model, usage ?? {}));
        return { usage, body, contentType: 'application/json' };
      },
    },
  };
}
