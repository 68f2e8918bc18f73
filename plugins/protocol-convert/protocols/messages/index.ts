/** The messages protocol. */

import type { Endpoint } from '../../../../core/contract/contract.ts';
import { objectOf } from '../../../../core/json/json.ts';
import type { Call } from '../../../common/domain/calls.ts';
import { editBody } from '../../../common/kit/body-edits.ts';
import { formatFrame } from '../../../common/kit/sse.ts';
import { isBlank, openingNamed, openingWhere } from '../../../common/wire/opening-frames.ts';
import type { Opened, Protocol, RequestBody } from '../../../common/wire/protocols.ts';
import { messagesCodec } from './codec.ts';
import { refuseCompaction } from './decode/compaction.ts';
import { refuseThread } from './decode/threads.ts';
import { renderError, streamError } from './errors.ts';
import { preflightCountTokens, preflightMessages } from './preflight.ts';
import { markEdits, withoutOwnMark } from './relay-marks.ts';
import { MessagesUsageMeter } from './usage-meter.ts';

const isNamedOpening = openingNamed('message_start', 'ping');
const isEmptyText = openingWhere(({ type, content_block: given }) => {
  const block = objectOf(given) ?? {};
  return type === 'content_block_start' && block['type'] === 'text' && isBlank(block['text']);
});

function open(call: Call, body: RequestBody, path: string): Opened {
  return {
    protocol: messages,
    call,
    json: body.json,
    prepare(target, members) {
      const { cacheMarks: marks } = target.upstream;
      if (marks === undefined || marks === 'client') return { path, ...editBody(body, target, { members }) };
      const unwanted = target.upstream.dropFields[target.protocol] ?? [];
      const changed = new Set([...unwanted, ...Object.keys(members?.set ?? {}), ...(members?.remove ?? [])]);
      const edits = markEdits(body, marks, changed);
      return {
        path,
        ...editBody(body, target, { members: marks === 'off' ? withoutOwnMark(members) : members, edits }),
      };
    },
  };
}

/** Anthropic's coding client requests `HEAD /api/hello` without a key before its first call. */
const connectivityCheck: Endpoint = {
  method: 'GET',
  path: '/api/hello',
  operation: 'hello',
  body: 'none',
  keyless: true,
  unlogged: true,
  charges: false,
  handle: () => ({
    status: 200,
    headers: { 'content-type': 'application/json', 'cache-control': 'no-store' },
    body: JSON.stringify({ status: 'ok' }),
  }),
};

export const messages: Protocol = {
  name: 'messages',
  path: '/v1/messages',
  address: 'POST /v1/messages',
  auth: { header: 'x-api-key', value: '{key}' },
  passedHeaders: ['anthropic-version', 'anthropic-beta'],
  defaultHeaders: { 'anthropic-version': '2023-06-01' },
  answersOnce: true,
  endpoints: [
    {
      path: '/v1/messages',
      operation: 'messages',
      describes: [
        {
          summary: 'Answers a conversation.',
          body: { types: ['application/json'], required: ['model', 'max_tokens', 'messages'] },
          answers: ['application/json', 'text/event-stream'],
        },
      ],
      open: (body) => open(preflightMessages(body), body, '/v1/messages'),
    },
    {
      path: '/v1/messages/count_tokens',
      operation: 'count-tokens',
      describes: [
        {
          summary: 'Counts the tokens of a conversation.',
          body: { types: ['application/json'], required: ['model', 'messages'] },
        },
      ],
      charges: false,
      open: (body) => open(preflightCountTokens(body), body, '/v1/messages/count_tokens'),
    },
  ],
  ownEndpoints: [connectivityCheck],
  createUsageMeter: (_call, options) => new MessagesUsageMeter(options),
  isOpening: (raw) => isNamedOpening(raw) || isEmptyText(raw),
  checkTarget({ json, call }, { protocol, traits }) {
    const isRelay = protocol === 'messages';
    refuseThread(json, isRelay && traits.threads === true);
    // Counts are of the conversation as it is.
    if (call.billable) refuseCompaction(json, isRelay && traits.compaction === true);
  },
  renderError,
  streamError,
  ignoresLastFrame: true,
  streamEnd: formatFrame(JSON.stringify({ type: 'message_stop' }), 'message_stop'),
  modelPlaces: [['message', 'model'], ['model']],
  codec: messagesCodec,
};
