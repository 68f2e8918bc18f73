/** Models of two publishers on Vertex AI: the generate-content and the messages protocol at the addresses of a Google Cloud project. */
import { definePlugin } from '../../core/contract/contract.ts';
import { z } from '../../core/contract/schema.ts';
import { type JsonObject, objectOf, textOf } from '../../core/json/json.ts';
import { readCount } from '../common/domain/usage.ts';
import { type VariantProtocol, wireProtocols } from '../common/wire/protocols.ts';

/** A key that is not computed is an access token. */
const auth = { header: 'authorization', value: 'Bearer {key}' };

const counted = {
  gemini: ['contents', 'systemInstruction', 'tools', 'generationConfig'],
  claude: ['system', 'messages', 'tools', 'tool_choice', 'thinking'],
};

/** `/models/NAME:generateContent` is the same below the publisher, and takes the same body. */
const gemini: VariantProtocol = {
  name: 'vertex-gemini',
  variantOf: 'gemini',
  path: '/publishers/google/models',
  auth,
  passedHeaders: [],
  defaultHeaders: {},
  address: (path) => `/publishers/google${path}`,
  counting: {
    request: ({ path, body }) => ({
      path: path.replace(/:\w+(?:\?.*)?$/, ':countTokens'),
      body: only(counted.gemini, body),
    }),
    tokens: (json) => readCount(json['totalTokens']),
  },
  readError,
};

/** The model and whether the answer is streamed are said by the address; the version by the body. */
const claude: VariantProtocol = {
  name: 'vertex-claude',
  variantOf: 'messages',
  path: '/publishers/anthropic/models',
  auth,
  passedHeaders: ['anthropic-beta'],
  defaultHeaders: {},
  members: { set: { anthropic_version: 'vertex-2023-10-16' }, remove: ['model'] },
  address: (_path, { model, stream }) =>
    `/publishers/anthropic/models/${encodeURIComponent(model)}:${stream ? 'streamRawPredict' : 'rawPredict'}`,
  counting: {
    request: ({ path, body }) => ({
      path: '/publishers/anthropic/models/count-tokens:rawPredict',
      body: { ...only(counted.claude, body), model: modelIn(path) },
    }),
    tokens: (json) => readCount(json['input_tokens']),
  },
  readError,
};

function only(members: readonly string[], body: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(body).filter(([name]) => members.includes(name)));
}

function modelIn(path: string): string {
  return decodeURIComponent(path.slice(path.lastIndexOf('/') + 1, path.lastIndexOf(':')));
}

/** Statuses whose messages speak of quotas, models and addresses of the operator's project. */
const ownAffairs = new Map([
  ['RESOURCE_EXHAUSTED', 'The model takes no more requests for now.'],
  ['NOT_FOUND', 'The model was not found.'],
]);
const namesProject = /\bprojects\/|\bproject [`'"#\d]|\byour project\b|\bgoogle(?:apis)?\.com\b/i;

/** Both publishers answer in Google's form, and the second one in its own too. */
function readError(body: JsonObject): JsonObject {
  const error = objectOf(body['error']);
  if (error === undefined) return body;
  const { message: written, ...others } = error;
  const message = ownAffairs.get(textOf(error['status']) ?? '') ?? textOf(written) ?? '';
  return { error: { ...others, message: namesProject.test(message) ? 'The model refused the request.' : message } };
}

export default definePlugin({
  name: 'vertex',
  config: z.strictObject({}),
  extends: [wireProtocols],
  setup(host) {
    for (const protocol of [gemini, claude]) host.extend(wireProtocols, protocol);
    return {};
  },
});
