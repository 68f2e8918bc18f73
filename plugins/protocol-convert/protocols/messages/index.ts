/** The messages protocol, put together. */
import { editBody } from '../../../../core/body-edits.ts';
import { formatFrame } from '../../../../core/sse.ts';
import type { Call } from '../../../../core/vocabulary.ts';
import type { Opened, Protocol, RequestBody } from '../../protocol.ts';
import { messagesCodec } from './codec.ts';
import { renderError, streamError } from './errors.ts';
import { peekCountTokens, peekMessages } from './peek.ts';
import { MessagesTap } from './tap.ts';

function open(call: Call, body: RequestBody, path: string): Opened {
  return { protocol: messages, call, json: body.json, prepare: (target) => ({ path, ...editBody(body, target) }) };
}

export const messages: Protocol = {
  name: 'messages',
  address: 'POST /v1/messages',
  auth: { header: 'x-api-key', value: '{key}' },
  passedHeaders: ['anthropic-version', 'anthropic-beta'],
  defaultHeaders: { 'anthropic-version': '2023-06-01' },
  endpoints: [
    { path: '/v1/messages', operation: 'messages', open: (body) => open(peekMessages(body), body, '/v1/messages') },
    {
      path: '/v1/messages/count_tokens',
      operation: 'count-tokens',
      open: (body) => open(peekCountTokens(body), body, '/v1/messages/count_tokens'),
    },
  ],
  createTap: () => new MessagesTap(),
  renderError,
  streamError,
  streamEnd: formatFrame(JSON.stringify({ type: 'message_stop' }), 'message_stop'),
  codec: messagesCodec,
};
