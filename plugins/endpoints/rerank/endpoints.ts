/** `POST /v2/rerank` in Cohere's shape, `/v1/rerank` in those of Jina, Voyage and Cohere's first version. */
import type { RequestBody } from '../../../core/json/request-body.ts';
import type { Target } from '../../common/domain/upstreams.ts';
import type { Usage } from '../../common/domain/usage.ts';
import { isAbsent, readJson, relayedBody } from '../checks.ts';
import type { AnswerContext, EndpointDescription, Prepared } from '../description.ts';
import { rerankError } from '../errors.ts';
import { parseAnswer } from '../whole-json.ts';
import { bearer, wire } from '../wires.ts';
import { cohereAnswer, commonAnswer, type Ranked, rankedOf, rerankUsage } from './answer.ts';
import { encodeRerank, type RerankRequest, readRerank } from './request.ts';

type Encode = (ranked: readonly Ranked[], usage: Usage, context: AnswerContext) => object;

const shapes: readonly string[] = [wire.cohereRerank, wire.jinaRerank, wire.voyageRerank];

/** `protocolOf`: the vendor whose client sends this body. */
function endpoint(
  path: string,
  protocolOf: (body: RequestBody) => string,
  encode: (request: RerankRequest) => Encode,
): EndpointDescription {
  return {
    path,
    operation: 'rerank',
    kind: 'rerank',
    summary: 'Orders documents by their relevance to a query.',
    request: 'json',
    model: 'body',
    answers: ['application/json'],
    open({ request }, limits) {
      const body = readJson(request.body);
      const read = readRerank(body, limits);
      const protocol = protocolOf(body);
      return {
        call: {
          protocol,
          model: read.model,
          stream: false,
          billable: true,
          inputTokens: read.tokens,
          maxOutputTokens: 0,
          choices: 1,
          kind: 'rerank',
          counted: { search: read.searches },
          convertsTo: shapes.filter((name) => name !== protocol),
        },
        prepare: (target) =>
          target.protocol === protocol ? relayed(body, target) : converted(read, target, encode(read)),
      };
    },
    renderError: rerankError,
  };
}

export const rerankEndpoints: readonly EndpointDescription[] = [
  endpoint(
    '/v2/rerank',
    () => wire.cohereRerank,
    () => (ranked, usage, context) => cohereAnswer(ranked, context.exchange.id, usage),
  ),
  endpoint(
    '/v1/rerank',
    ({ json }) => (isAbsent(json['top_k']) ? wire.jinaRerank : wire.voyageRerank),
    (request) => (ranked, usage, context) => commonAnswer(ranked, request, context.exchange.id, usage),
  ),
];

function relayed(body: RequestBody, target: Target): Prepared {
  return {
    wire: bearer,
    path: '/rerank',
    ...relayedBody(body, target),
    converted: false,
    answer: {
      form: 'whole',
      async read(bytes) {
        const json = await parseAnswer(bytes);
        return { usage: rerankUsage(json), upstreamId: idOf(json) };
      },
    },
  };
}

function idOf({ id }: { readonly id?: unknown }): string | undefined {
  return typeof id === 'string' ? id : undefined;
}

function converted(read: RerankRequest, target: Target, encode: Encode): Prepared {
  return {
    wire: bearer,
    path: '/rerank',
    body: Buffer.from(JSON.stringify(encodeRerank(read, target))),
    contentType: 'application/json',
    dropped: read.others,
    converted: true,
    answer: {
      form: 'whole',
      async read(bytes, context) {
        const json = await parseAnswer(bytes);
        const ranked = rankedOf(json, read.documents.length);
        const usage = rerankUsage(json);
        const body = JSON.stringify(encode(ranked, usage ?? { search: read.searches }, context));
        return { usage, upstreamId: idOf(json), body, contentType: 'application/json' };
      },
    },
  };
}
